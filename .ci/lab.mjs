// `npm run lab`: the simulator as one page, docs/lab/index.html, of what tsc has built. It needs no
// server and no network, and works from file://.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const sources = join(root, 'plugins/lab/page');
const page = join(root, 'docs/lab/index.html');

/** Handles of CNOs are EventEmitters; no scenario asks for one. */
const withoutHandles = {
  name: 'without-handles',
  setup(bundle) {
    bundle.onResolve({ filter: /^node:events$/ }, ({ path }) => ({ path, namespace: 'absent' }));
    bundle.onLoad({ filter: /./, namespace: 'absent' }, () => ({
      contents: 'export class EventEmitter {}',
    }));
  },
};

const { outputFiles } = await build({
  entryPoints: [join(root, 'dist/plugins/lab/page/main.js')],
  bundle: true,
  minify: true,
  // Names of classes are part of messages.
  keepNames: true,
  // package.json names what must stay of the entries; here all of each module stays.
  ignoreAnnotations: true,
  format: 'esm',
  platform: 'browser',
  target: 'es2022',
  write: false,
  plugins: [withoutHandles],
});
const style = readFileSync(join(sources, 'page.css'), 'utf8');
const html = readFileSync(join(sources, 'page.html'), 'utf8')
  .replace('/*STYLE*/', () => style)
  .replace('/*SCRIPT*/', () => outputFiles[0].text);
mkdirSync(dirname(page), { recursive: true });
writeFileSync(page, html);
console.log(`docs/lab/index.html: ${html.length} bytes, ${gzipSync(html).length} gzipped`);
