/**
 * Rules of structure that no linter has: how deep classes go, how many files a folder holds, and
 * what is imported in a circle. Pure: sources come in, violations go out.
 */
import { posix } from 'node:path';
import ts from 'typescript';

/** Text by path, relative to the root. */
export type Sources = ReadonlyMap<string, string>;

export interface Import {
  readonly from: string;
  readonly to: string;
  readonly typeOnly: boolean;
}

interface Parsed {
  readonly imports: readonly Import[];
  /** What a class of this file extends, by name: a local name, or undefined. */
  readonly classes: ReadonlyMap<string, string | undefined>;
  /** Local name to where it comes from, and what it is called there. */
  readonly names: ReadonlyMap<string, readonly [file: string, name: string]>;
  /** The same of what is passed on. */
  readonly exports: ReadonlyMap<string, readonly [file: string, name: string]>;
  /** Files all of which is passed on. */
  readonly everything: readonly string[];
  readonly interfaces: ReadonlySet<string>;
  /** Types that a class implements, or that an object literal is written as: by local name. */
  readonly implemented: readonly { readonly name: string; readonly byClass: boolean }[];
}

/** How many classes of ours a class may have above itself; errors have one more. */
const MOST_ABOVE = 1;

function parse(path: string, text: string, sources: Sources): Parsed {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const imports: Import[] = [];
  const classes = new Map<string, string | undefined>();
  const names = new Map<string, readonly [string, string]>();
  const exports = new Map<string, readonly [string, string]>();
  const everything: string[] = [];
  const interfaces = new Set<string>();
  const implemented: { name: string; byClass: boolean }[] = [];
  const targetOf = (specifier: ts.Expression | undefined): string | undefined => {
    if (!specifier || !ts.isStringLiteral(specifier) || !specifier.text.startsWith('.')) return;
    const to = posix.join(posix.dirname(path), specifier.text).replace(/\.js$/, '.ts');
    return sources.has(to) ? to : undefined;
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) {
      const to = targetOf(node.moduleSpecifier);
      if (to === undefined) return;
      const bindings = ts.isImportDeclaration(node)
        ? node.importClause?.namedBindings
        : node.exportClause;
      const whole = ts.isImportDeclaration(node)
        ? node.importClause?.isTypeOnly === true
        : node.isTypeOnly;
      const elements =
        bindings && (ts.isNamedImports(bindings) || ts.isNamedExports(bindings))
          ? [...bindings.elements]
          : [];
      const typeOnly = whole || (elements.length > 0 && elements.every((each) => each.isTypeOnly));
      imports.push({ from: path, to, typeOnly });
      const into = ts.isImportDeclaration(node) ? names : exports;
      for (const { name, propertyName } of elements) {
        into.set(name.text, [to, (propertyName ?? name).text]);
      }
      if (ts.isExportDeclaration(node) && bindings === undefined) everything.push(to);
      return;
    }
    if (ts.isClassDeclaration(node) && node.name) {
      const above = node.heritageClauses?.find(
        ({ token }) => token === ts.SyntaxKind.ExtendsKeyword,
      )?.types[0]?.expression;
      classes.set(node.name.text, above && ts.isIdentifier(above) ? above.text : undefined);
    }
    if (ts.isInterfaceDeclaration(node)) interfaces.add(node.name.text);
    implemented.push(...implementedBy(node));
    ts.forEachChild(node, visit);
  };
  visit(file);
  return { imports, classes, names, exports, everything, interfaces, implemented };
}

function implementedBy(node: ts.Node): Parsed['implemented'] {
  if (ts.isClassLike(node)) {
    return (node.heritageClauses ?? [])
      .filter(({ token }) => token === ts.SyntaxKind.ImplementsKeyword)
      .flatMap(({ types }) => types)
      .map(({ expression }) => ({ name: expression.getText(), byClass: true }));
  }
  const type = ts.isObjectLiteralExpression(node) ? typeOfLiteral(node) : undefined;
  if (type === undefined || !ts.isTypeReferenceNode(type)) return [];
  return [{ name: type.typeName.getText(), byClass: false }];
}

/** The type that an object literal is written as: of its variable, its function or `satisfies`. */
function typeOfLiteral({ parent }: ts.ObjectLiteralExpression): ts.TypeNode | undefined {
  if (ts.isVariableDeclaration(parent) || ts.isPropertyDeclaration(parent)) return parent.type;
  if (ts.isSatisfiesExpression(parent) || ts.isAsExpression(parent)) return parent.type;
  const isResult = ts.isReturnStatement(parent) || ts.isParenthesizedExpression(parent);
  return isResult ? ts.findAncestor(parent, ts.isFunctionLike)?.type : undefined;
}

function parseAll(sources: Sources): Map<string, Parsed> {
  return new Map([...sources].map(([path, text]) => [path, parse(path, text, sources)]));
}

export function importsOf(sources: Sources): Import[] {
  return [...parseAll(sources).values()].flatMap(({ imports }) => imports);
}

type Found = readonly [file: string, name: string];

/** Finds where a name is declared, through whatever passes it on. */
function finder(
  files: ReadonlyMap<string, Parsed>,
  kind: 'classes' | 'interfaces',
): (file: string, local: string) => Found | undefined {
  const find = (file: string, name: string, seen = new Set<string>()): Found | undefined => {
    const parsed = files.get(file);
    if (parsed === undefined || seen.has(file)) return undefined;
    seen.add(file);
    if (parsed[kind].has(name)) return [file, name];
    const named = parsed.exports.get(name);
    if (named) return find(named[0], named[1], seen);
    for (const other of parsed.everything) {
      const found = find(other, name, seen);
      if (found) return found;
    }
    return undefined;
  };
  return (file, local) => find(...(files.get(file)!.names.get(local) ?? ([file, local] as const)));
}

/** Chains of classes that are too deep, the lowest class first: `A → B → C`. */
export function deepClasses(sources: Sources): string[] {
  const files = parseAll(sources);
  const find = finder(files, 'classes');
  const above = ([file, name]: Found): Found | undefined => {
    const local = files.get(file)!.classes.get(name);
    return local === undefined ? undefined : find(file, local);
  };
  const deep: string[] = [];
  for (const [file, { classes }] of files) {
    for (const name of classes.keys()) {
      const chain: string[] = [name];
      for (let next = above([file, name]); next; next = above(next)) chain.push(next[1]);
      const most = MOST_ABOVE + (name.endsWith('Error') ? 1 : 0);
      if (chain.length - 1 > most) deep.push(chain.join(' → '));
    }
  }
  return deep.sort();
}

const folderOf = (path: string): string => posix.dirname(path);

/** Folders that hold more files than `most`, those of their sub-folders aside. */
export function crowdedFolders(paths: readonly string[], most: number): string[] {
  const counts = new Map<string, number>();
  for (const path of paths) counts.set(folderOf(path), (counts.get(folderOf(path)) ?? 0) + 1);
  return [...counts].filter(([, count]) => count > most).map(([folder, n]) => `${folder}: ${n}`);
}

/** Folders that import each other in a circle at run time, largest circle first. */
export function roomCycles(imports: readonly Import[]): string[][] {
  const graph = new Map<string, Set<string>>();
  for (const { from, to, typeOnly } of imports) {
    const [room, other] = [folderOf(from), folderOf(to)];
    if (typeOnly || room === other) continue;
    graph.set(room, (graph.get(room) ?? new Set()).add(other));
    if (!graph.has(other)) graph.set(other, new Set());
  }
  return cycles(graph);
}

/** Files of at most `lines` lines; what a reader would not look up by itself. */
export function smallFiles(sources: Sources, lines: number): string[] {
  const isSmall = (text: string): boolean => text.trimEnd().split('\n').length <= lines;
  return [...sources].filter(([, text]) => isSmall(text)).map(([path]) => path);
}

/** Files that one other file imports. */
export function filesOfOneImporter(imports: readonly Import[]): string[] {
  const importers = new Map<string, Set<string>>();
  for (const { from, to } of imports) {
    importers.set(to, (importers.get(to) ?? new Set()).add(from));
  }
  return [...importers].filter(([, { size }]) => size === 1).map(([path]) => path);
}

/**
 * Interfaces that one class implements, and no object literal: go-to-definition ends at them, and
 * the class would do. One that a text of `others` names is in use elsewhere: a test's double of it,
 * or a stranger's class.
 */
export function oneImplementer(sources: Sources, others: readonly string[]): string[] {
  const files = parseAll(sources);
  const find = finder(files, 'interfaces');
  const words = new Set(others.flatMap((text) => text.match(/\w+/g) ?? []));
  const classes = new Map<string, number>();
  for (const [file, { implemented }] of files) {
    for (const { name, byClass } of implemented) {
      const found = find(file, name);
      if (found === undefined || words.has(found[1])) continue;
      const id = found.join(': ');
      classes.set(id, (classes.get(id) ?? 0) + (byClass ? 1 : 2));
    }
  }
  return [...classes].filter(([, count]) => count === 1).map(([id]) => id);
}

/** Imports under the name of another class of ours, and declarations merged into our modules. */
export function assumedNames(sources: Sources): string[] {
  const files = parseAll(sources);
  const classes = new Set([...files.values()].flatMap((each) => [...each.classes.keys()]));
  const merged = [...sources].filter(([, text]) => /^declare module '\./m.test(text));
  const renamed = [...files].filter(([, { names }]) =>
    [...names].some(([local, [, name]]) => local !== name && classes.has(local)),
  );
  return [...renamed, ...merged].map(([file]) => file);
}

/** Doc comments that begin with a function word, where a noun or a verb would say what it is. */
export function oddHeads(sources: Sources): string[] {
  const odd = /\/\*\*\s+(?:\* )?(?:Of|What|Whether|That|Which|Who) /g;
  return [...sources].flatMap(([path, text]) => [...text.matchAll(odd)].map(() => path));
}

/** Citations of documents that are not in the repository. */
export function deadCitations(sources: Sources): string[] {
  return [...sources]
    .filter(([, text]) => /\b(?:wire|DAT) facts\b/i.test(text))
    .map(([path]) => path);
}

/** Strongly connected components of more than one node (Tarjan). */
function cycles(graph: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const order = new Map<string, number>();
  const low = new Map<string, number>();
  const open: string[] = [];
  const found: string[][] = [];
  const visit = (node: string): void => {
    order.set(node, order.size);
    low.set(node, order.get(node)!);
    open.push(node);
    for (const next of graph.get(node) ?? []) {
      if (!order.has(next)) visit(next);
      if (open.includes(next)) low.set(node, Math.min(low.get(node)!, low.get(next)!));
    }
    if (low.get(node) !== order.get(node)) return;
    const component = open.splice(open.indexOf(node));
    if (component.length > 1) found.push(component.sort());
  };
  for (const node of graph.keys()) if (!order.has(node)) visit(node);
  return found.sort((a, b) => b.length - a.length);
}
