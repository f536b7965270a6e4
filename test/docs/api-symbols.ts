/**
 * Whether a name that a page shows exists in the public API: by the compiler, on the declarations
 * that are shipped. `ia.query().ia.maxEps`, `ep.postSend(segments, cookie, flags)`,
 * `DatDtoStatus.FLUSHED`, `ConnectOptions.address`.
 */
import { join } from 'node:path';
import ts from 'typescript';

const root = join(import.meta.dirname, '../../..');

/** Objects that pages name without saying what they are. */
const INSTANCES: Readonly<Record<string, string>> = {
  ia: 'Ia',
  pz: 'Pz',
  lmr: 'Lmr',
  rmr: 'Rmr',
  srq: 'Srq',
  evd: 'Evd',
  cno: 'Cno',
  ep: 'Ep',
  udEp: 'UdEp',
  psp: 'Psp',
  rsp: 'Rsp',
  csp: 'Csp',
  cr: 'Cr',
  registry: 'Registry',
};

/** A word with what is called on it: `postSend`, and `['segments', 'cookie']`. */
export interface Step {
  readonly name: string;
  readonly parameters: readonly string[] | undefined;
}

/** The steps of an expression; undefined when it is none that can be looked up. */
export function stepsOf(expression: string): readonly Step[] | undefined {
  if (!/^[A-Za-z]\w*\$?(\([^()]*\))?(\.[A-Za-z]\w*\$?(\([^()]*\))?)*$/.test(expression)) {
    return undefined;
  }
  return [...expression.matchAll(/([A-Za-z]\w*\$?)(?:\(([^()]*)\))?/g)].flatMap((match) => {
    const [all, name = '', list] = match;
    const at = match.index;
    // Words inside of a parameter list are no steps.
    const inside =
      expression.slice(0, at).split('(').length > expression.slice(0, at).split(')').length;
    if (inside) return [];
    const parameters = all.includes('(')
      ? (list ?? '').split(',').map((word) => word.trim())
      : undefined;
    return [{ name, parameters: parameters?.filter(Boolean) }];
  });
}

export class ApiSymbols {
  private readonly checker: ts.TypeChecker;
  private readonly exports: ReadonlyMap<string, ts.Symbol>;
  private readonly file: ts.SourceFile;

  /** @param entries declarations whose exports are the API */
  constructor(entries: readonly string[]) {
    const paths = entries.map((entry) => join(root, entry));
    const program = ts.createProgram(paths, {
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      target: ts.ScriptTarget.ES2023,
      strict: true,
      skipLibCheck: true,
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
    });
    this.checker = program.getTypeChecker();
    const found = new Map<string, ts.Symbol>();
    let file: ts.SourceFile | undefined;
    for (const path of paths) {
      file = program.getSourceFile(path);
      const module = file && this.checker.getSymbolAtLocation(file);
      if (module === undefined) throw new Error(`${path} is no module: build first`);
      for (const symbol of this.checker.getExportsOfModule(module)) found.set(symbol.name, symbol);
    }
    if (file === undefined) throw new Error('no entries');
    this.file = file;
    this.exports = found;
  }

  /** What is wrong with an expression; undefined when it exists just so. */
  problemOf(expression: string): string | undefined {
    const [first, ...rest] = stepsOf(expression) ?? [];
    if (first === undefined) return `${expression}: no expression`;
    const symbol = this.exports.get(INSTANCES[first.name] ?? first.name);
    if (symbol === undefined) return `${expression}: ${first.name} is not exported`;
    let type = this.typeOf(symbol, first.name in INSTANCES);
    for (const step of [first, ...rest]) {
      if (step !== first) {
        const member = this.memberOf(type, step.name);
        if (member === undefined) return `${expression}: there is no ${step.name}`;
        type = member;
      }
      if (step.parameters === undefined) continue;
      const signatures = type.getCallSignatures();
      const fitting = signatures.find((one) => fits(one, step.parameters ?? []));
      if (fitting === undefined) return `${expression}: ${step.name} takes ${shapes(signatures)}`;
      const result = fitting.getReturnType();
      type = this.checker.getAwaitedType(result) ?? result;
    }
    return undefined;
  }

  private typeOf(symbol: ts.Symbol, instance: boolean): ts.Type {
    const target =
      (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : this.checker.getAliasedSymbol(symbol);
    const isValue = (target.flags & ts.SymbolFlags.Value) !== 0;
    const isClass = (target.flags & ts.SymbolFlags.Class) !== 0;
    return instance || !isValue || isClass
      ? this.checker.getDeclaredTypeOfSymbol(target)
      : this.checker.getTypeOfSymbolAtLocation(target, this.file);
  }

  private memberOf(type: ts.Type, name: string): ts.Type | undefined {
    const present = this.checker.getNonNullableType(type);
    const property = present.getProperty(name);
    if (property !== undefined) return this.checker.getTypeOfSymbolAtLocation(property, this.file);
    return present.getStringIndexType();
  }
}

/** A list of parameters that a page shows: the names of the signature, all or the first ones. */
function fits(signature: ts.Signature, shown: readonly string[]): boolean {
  const names = signature.getParameters().map(({ name }) => name);
  return shown.every((name, i) => names[i] === name);
}

function shapes(signatures: readonly ts.Signature[]): string {
  if (signatures.length === 0) return 'no arguments: it is no method';
  return signatures
    .map(
      (one) =>
        `(${one
          .getParameters()
          .map(({ name }) => name)
          .join(', ')})`,
    )
    .join(' or ');
}
