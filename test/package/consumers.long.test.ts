// Programs of those who install the package: as an ES module, by require, bundled, in TypeScript.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loopback } from '../support/loopback.js';
import { ENTRIES, install, ROOT, succeed } from './packed.js';
import { talk } from './talk.js';

const SERVER = loopback(26, 1);

const TALK = talk(SERVER);

/** Nothing that an entry declares may be of a type that a program cannot reach. */
const TYPED = `
  ${ENTRIES.map((name, i) => `import * as entry${i} from '${name}';`).join('\n  ')}
  import { type DatEvent, type Evd, type Ia, openIa } from 'dapl';
  import { Fabric, mock } from 'dapl/providers/mock';

  export const entries = [${ENTRIES.map((_, i) => `entry${i}`).join(', ')}];
  /** The objects that events name are declared in several files that merge. */
  export function about(event: DatEvent): string {
    switch (event.type) {
      case 'connection-request':
        return event.cr.state;
      case 'connection':
        return event.ep?.state ?? '';
      default:
        return event.type;
    }
  }
  const fabric = new Fabric({ autoRun: true });
  const ia: Ia = await openIa(mock({ fabric, address: '192.0.2.1' }));
  const evd: Evd = ia.createEvd({ qlen: 4 });
  console.log(ia.address, evd.qlen);
  await ia.close();`;

describe('programs with the package', function () {
  this.timeout(300_000);
  const project = mkdtempSync(join(tmpdir(), 'dapl-consumers-'));
  before(async () => {
    await install(project, '@types/node', 'undici-types', 'mocha');
    writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
  });
  after(() => rmSync(project, { recursive: true }));

  const run = (...args: readonly string[]): string => succeed(process.execPath, args, project);

  function write(name: string, text: string): string {
    const path = join(project, name);
    writeFileSync(path, text);
    return path;
  }

  it('import it as ES modules, every entry', () => {
    const imports = ENTRIES.map((name) => `await import('${name}');`).join('\n');
    // The conformance suite describes itself to mocha, which is there when it is called.
    const path = write('esm.mjs', `import * as easy from 'dapl/easy';${imports}${TALK}`);
    assert.equal(run(path), 'hello\n');
  });

  it('require it, every entry', () => {
    const requires = ENTRIES.map((name) => `require('${name}');`).join('\n');
    const program = `const easy = require('dapl/easy');${requires}(async () => {${TALK}})();`;
    assert.equal(run('--no-warnings', write('required.cjs', program)), 'hello\n');
  });

  it('require and import one and the same module', () => {
    const path = write(
      'same.mjs',
      `import { createRequire } from 'node:module';
      import { Ia } from 'dapl';
      console.log(createRequire(import.meta.url)('dapl').Ia === Ia);`,
    );
    assert.equal(run('--no-warnings', path), 'true\n');
  });

  for (const format of ['esm', 'cjs'] as const) {
    it(`are bundled by esbuild as ${format}, by the command of docs/softroce.md`, () => {
      const page = readFileSync(join(ROOT, 'docs/softroce.md'), 'utf8');
      const [, args] = new RegExp(`^ {4}esbuild (.*--format=${format} .*)$`, 'm').exec(page) ?? [];
      assert.ok(args !== undefined);
      // Of a program in TypeScript, too, whose server is closed at the end of its block.
      const resource = `await using resource = { async [Symbol.asyncDispose]() {} };`;
      write(
        'program.js',
        `import * as easy from 'dapl/easy'; (async () => {${resource}${TALK}})();`,
      );
      const esbuild = join(ROOT, 'node_modules/.bin/esbuild');
      succeed('bash', ['-c', `${esbuild} --log-level=error ${args}`], project);
      assert.equal(run(`program.${format === 'esm' ? 'mjs' : 'cjs'}`), 'hello\n');
    });
  }

  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  for (const [module, moduleResolution] of [
    ['node16', 'node16'],
    ['esnext', 'bundler'],
  ] as const) {
    it(`are checked by TypeScript, strict, with ${moduleResolution}`, () => {
      const directory = join(project, moduleResolution);
      mkdirSync(directory);
      writeFileSync(join(directory, 'program.ts'), TYPED);
      const config = {
        compilerOptions: {
          module,
          moduleResolution,
          target: 'es2022',
          lib: ['es2023', 'esnext.disposable'],
          types: ['node'],
          strict: true,
          exactOptionalPropertyTypes: true,
          skipLibCheck: false,
          outDir: 'out',
        },
      };
      writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(config));
      run(tsc, '-p', directory);
      if (module !== 'esnext')
        assert.equal(run(join(directory, 'out/program.js')), '192.0.2.1 4\n');
    });
  }

  it('find the command, which knows its version and runs the conformance suite', () => {
    const command = join(project, 'node_modules/dapl/dist/plugins/cli/main.js');
    assert.match(run(command, '--version'), /^\d+\.\d+\.\d+/);
    assert.match(run(command, 'test', '-P', 'mock', '--only', 'Transferring'), /passed/);
  });
});
