// What `npm pack` takes in place of the outputs of tsc: a JavaScript file and one of declarations
// for each entry of package.json, and what several of them share in `dist/chunks`. The paths of the
// entries are those of a checkout, so that package.json is the same in both.
//
//   node .ci/pack.mjs            before packing: builds, and puts the bundles in the place of dist
//   node .ci/pack.mjs --restore  after it: puts the outputs of tsc back
//   node .ci/pack.mjs DIRECTORY  the bundles of what was built, into that directory; dist stays
//   node .ci/pack.mjs --types DIRECTORY  of these, the declarations only

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rollup } from 'rollup';
import { dts } from 'rollup-plugin-dts';
import ts from 'typescript';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, 'dist');
/** Where the outputs of tsc are while bundles are in their place. */
const unbundled = join(root, 'build/unbundled');

function run(...args) {
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}

/** What runs as a process of its own; no entry leads there. */
const PROGRAMS = ['./dist/providers/softroce/xrc-host-program.js'];

/**
 * Input of rollup, a path without its extension each: the entries of package.json, and the
 * programs.
 */
function entries(kind, extension) {
  const { exports, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const paths = Object.values(exports).flatMap((entry) => entry[kind] ?? []);
  if (kind === 'default') paths.push(...Object.values(bin), ...PROGRAMS);
  return Object.fromEntries(
    paths.map((path) => [relative('dist', path).slice(0, -extension.length), join(root, path)]),
  );
}

/** Other packages are imported as they are, by their names; all else is the package's own. */
const isOtherPackage = (id) => !id.startsWith('.') && !id.startsWith('/');

async function write(kind, extension, directory, plugins) {
  const bundle = await rollup({
    input: entries(kind, extension),
    external: isOtherPackage,
    plugins,
    // A module is here for what it does, too (registration, decorators): all of each stays.
    treeshake: false,
    onwarn(warning, report) {
      // The helper that tsc makes for decorators asks for a global one first.
      if (warning.code === 'THIS_IS_UNDEFINED') return;
      // What a class of an entry implements need not be exported by an entry.
      if (warning.message.includes('references private shared type exports')) return;
      report(warning);
    },
  });
  await bundle.write({
    dir: directory,
    format: 'es',
    entryFileNames: `[name]${extension}`,
    chunkFileNames: `chunks/[name]${plugins.length > 0 ? '.ts' : extension}`,
    // Declaration merging goes by the names of exports.
    minifyInternalExports: false,
    hoistTransitiveImports: false,
  });
  await bundle.close();
}

const isInternal = (node) =>
  ts.getJSDocTags(node).some(({ tagName }) => tagName.text === 'internal');

/**
 * Declarations without the members that are `@internal`: an internal constructor is protected, and
 * a class that lacks members does not say what it implements.
 */
function withoutInternals(code) {
  const source = ts.createSourceFile('types.d.ts', code, ts.ScriptTarget.Latest, true);
  const left = [];
  const visit = (node) => {
    if ((ts.isClassElement(node) || ts.isTypeElement(node)) && isInternal(node)) {
      left.push(node);
      return;
    }
    if (ts.isClassDeclaration(node) && node.members.some(isInternal)) {
      const { ImplementsKeyword } = ts.SyntaxKind;
      left.push(...(node.heritageClauses ?? []).filter(({ token }) => token === ImplementsKeyword));
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return left.reduceRight((text, node) => {
    const instead = ts.isConstructorDeclaration(node) ? '\n    protected constructor();' : '';
    return text.slice(0, node.getFullStart()) + instead + text.slice(node.end);
  }, code);
}

const publicMembers = {
  name: 'public-members',
  transform: (code, id) => (id.endsWith('.d.ts') ? { code: withoutInternals(code) } : null),
};

async function bundleTypes(directory) {
  await write('types', '.d.ts', directory, [publicMembers, dts()]);
}

async function bundle(directory) {
  rmSync(directory, { recursive: true, force: true });
  await write('default', '.js', directory, []);
  await bundleTypes(directory);
}

function restore() {
  if (!existsSync(unbundled)) return;
  rmSync(dist, { recursive: true, force: true });
  renameSync(unbundled, dist);
}

const [argument, directory] = process.argv.slice(2);
if (argument === '--restore') {
  restore();
} else if (argument === '--types') {
  await bundleTypes(directory);
} else if (argument !== undefined) {
  await bundle(argument);
} else {
  restore(); // what an interrupted run has left
  run('build.mjs', '--library');
  run('.ci/lab.mjs');
  run('.ci/prebuild.mjs');
  const bundles = join(root, 'build/bundles');
  await bundle(bundles);
  renameSync(dist, unbundled);
  renameSync(bundles, dist);
}
