/**
 * Small changes to a program, all of them in one text: each is there beside what it changes, and a
 * number chosen at run time says which one holds. (Stryker does the same; its mocha runner knows
 * neither our mocha nor, in its present version, Node 20.)
 *
 * What is not changed, because no test should look there: what an error says, what is traced or
 * logged, invariants, and a constructor's plain keeping of a parameter.
 */
import ts from 'typescript';

export interface Mutant {
  readonly id: number;
  readonly file: string;
  /** Where, what and how: the name by which it is judged. */
  readonly name: string;
}

/** What holds instead, and the words for it. */
type Change = readonly [text: string, what: string];

const { SyntaxKind } = ts;
const BOUNDARIES = new Map<ts.SyntaxKind, string>([
  [SyntaxKind.LessThanToken, '<='],
  [SyntaxKind.LessThanEqualsToken, '<'],
  [SyntaxKind.GreaterThanToken, '>='],
  [SyntaxKind.GreaterThanEqualsToken, '>'],
  [SyntaxKind.EqualsEqualsEqualsToken, '!=='],
  [SyntaxKind.ExclamationEqualsEqualsToken, '==='],
  [SyntaxKind.PlusToken, '-'],
  [SyntaxKind.MinusToken, '+'],
]);
const EQUALITIES = [
  SyntaxKind.EqualsEqualsEqualsToken,
  SyntaxKind.ExclamationEqualsEqualsToken,
] as const;
const TELLS = /^(this\.)?(\w+\.)*(logger\.\w+|trace|debug|assert|note|notes\.\w+)\??\.?\($/;
const SNIPPET = 60;

/** Defined in each changed file: is this the change that holds? None does in programs of a test. */
const PRELUDE =
  'function __mutated(id) { const s = globalThis.__mutation; s?.hits?.add(id);' +
  ' return s?.active === id; }\n';

export class Instrumented {
  readonly mutants: Mutant[] = [];
  readonly text: string;
  private readonly tree: ts.SourceFile;
  private readonly names = new Map<string, number>();

  /** @param firstId number of the first mutant; the others follow */
  constructor(
    private readonly file: string,
    private readonly source: string,
    private readonly firstId: number,
  ) {
    this.tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS);
    this.text = PRELUDE + this.render(this.tree);
  }

  private render(node: ts.Node): string {
    if (isSpared(node, this.tree)) return node.getText(this.tree);
    // Numbered from the outside in, as they are read.
    const guards = changesOf(node, this.tree).map(([text, what]) => [this.note(node, what), text]);
    let out = '';
    let at = node.getStart(this.tree);
    node.forEachChild((child) => {
      out += this.source.slice(at, child.getStart(this.tree)) + this.render(child);
      at = child.end;
    });
    out += this.source.slice(at, node.end);
    if (guards.length === 0) return out;
    if (ts.isExpressionStatement(node)) return `{if(!__mutated(${guards[0]?.[0]})){${out}}}`;
    const choices = guards.map(([id, text]) => `__mutated(${id})?(${text}):`);
    return `(${choices.join('')}${out})`;
  }

  private note(node: ts.Node, what: string): number {
    const snippet = node.getText(this.tree).replace(/\s+/g, ' ').slice(0, SNIPPET);
    const name = `${placeOf(node, this.tree)}: ${snippet} ⇒ ${what}`;
    const nth = (this.names.get(name) ?? 0) + 1;
    this.names.set(name, nth);
    const id = this.firstId + this.mutants.length;
    this.mutants.push({ id, file: this.file, name: nth === 1 ? name : `${name} (${nth})` });
    return id;
  }
}

function changesOf(node: ts.Node, tree: ts.SourceFile): readonly Change[] {
  if (ts.isExpressionStatement(node)) return isMoot(node) ? [] : [['', 'nothing']];
  if (isCondition(node)) return [...conditionOf(node, tree)];
  if (ts.isBinaryExpression(node)) return binaryOf(node, tree);
  if (node.kind === SyntaxKind.TrueKeyword) return [['false', 'false']];
  if (node.kind === SyntaxKind.FalseKeyword) return [['true', 'true']];
  if (ts.isCallExpression(node)) return callOf(node, tree);
  return [];
}

/** Of `if` and `?:`: it holds, or it does not; parts of it are changed besides. */
function conditionOf(node: ts.Expression, tree: ts.SourceFile): readonly Change[] {
  const always: Change[] = [
    ['true', 'true'],
    ['false', 'false'],
  ];
  if (!ts.isBinaryExpression(node)) return always;
  const isEquality = EQUALITIES.some((kind) => kind === node.operatorToken.kind);
  return isEquality ? always : [...always, ...binaryOf(node, tree)];
}

function binaryOf(node: ts.BinaryExpression, tree: ts.SourceFile): readonly Change[] {
  const { left, right, operatorToken } = node;
  const [l, r] = [left.getText(tree), right.getText(tree)];
  const { kind } = operatorToken;
  if (kind === SyntaxKind.AmpersandAmpersandToken || kind === SyntaxKind.BarBarToken) {
    return [
      [l, 'without the right side'],
      [r, 'without the left side'],
    ];
  }
  const other = BOUNDARIES.get(kind);
  if (other === undefined || [left, right].some(isText)) return [];
  return [[`${l} ${other} ${r}`, other]];
}

function callOf(node: ts.CallExpression, tree: ts.SourceFile): readonly Change[] {
  const callee = node.expression.getText(tree);
  const given = node.arguments.map((argument) => argument.getText(tree)).join(', ');
  if (callee === 'Math.min') return [[`Math.max(${given})`, 'max']];
  if (callee === 'Math.max') return [[`Math.min(${given})`, 'min']];
  const isBody = ts.isArrowFunction(node.parent) && node.parent.body === node;
  return isBody ? [['undefined', 'nothing']] : [];
}

function isCondition(node: ts.Node): node is ts.Expression {
  const { parent } = node;
  if (parent === undefined) return false;
  if (ts.isIfStatement(parent)) return parent.expression === node;
  return ts.isConditionalExpression(parent) && parent.condition === node;
}

function isText(node: ts.Node): boolean {
  return ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);
}

/** What an error says, and what is told to people. */
function isSpared(node: ts.Node, tree: ts.SourceFile): boolean {
  if (ts.isThrowStatement(node) || ts.isTemplateExpression(node)) return true;
  return ts.isCallExpression(node) && TELLS.test(`${node.expression.getText(tree)}(`);
}

/** A statement without which nothing works at all, or nothing to see is missing. */
function isMoot({ expression, parent }: ts.ExpressionStatement): boolean {
  if (ts.isStringLiteral(expression)) return true;
  const tree = expression.getSourceFile();
  if (ts.isCallExpression(expression)) {
    const { kind } = expression.expression;
    return kind === SyntaxKind.SuperKeyword || isSpared(expression, tree);
  }
  const inConstructor = ts.isBlock(parent) && ts.isConstructorDeclaration(parent.parent);
  return inConstructor && /^this\.(\w+) = \1$/.test(expression.getText(tree));
}

/** Names of the classes, methods and functions around it. */
function placeOf(node: ts.Node, tree: ts.SourceFile): string {
  const names: string[] = [];
  for (let at: ts.Node | undefined = node.parent; at !== undefined; at = at.parent) {
    if (ts.isConstructorDeclaration(at)) names.unshift('constructor');
    else if (isNamed(at) && at.name !== undefined) names.unshift(at.name.getText(tree));
  }
  // A decorated class is an expression that stands in a variable of its own name.
  return names.filter((name, i) => name !== names[i - 1]).join('.');
}

function isNamed(node: ts.Node): node is ts.Node & { readonly name?: ts.Node } {
  return (
    ts.isClassLike(node) ||
    ts.isFunctionLike(node) ||
    ts.isPropertyDeclaration(node) ||
    ts.isPropertyAssignment(node) ||
    ts.isVariableDeclaration(node)
  );
}
