/** What the parts of a device stand on: whether all of it is there, and nothing on itself. */
import { DatError } from '../errors/index.js';
import type { Part, Token } from '../spi/index.js';

/** One of the things that stand for a token: the provider's, or one over it. */
export interface Level {
  /** What stands for it in the container. */
  readonly key: symbol;
  readonly token: Token<unknown>;
  readonly part: Part<unknown>;
  readonly title: string;
}

type Needs = (level: Level) => readonly (readonly [name: string, given: Level | undefined])[];

/**
 * @throws DatError DAT_MODEL_NOT_SUPPORTED that names the chain by which a level stands on itself;
 * whatever `needsOf` throws
 */
export function checkGraph(roots: readonly Level[], needsOf: Needs): void {
  const sound = new Set<Level>();
  const chain: Level[] = [];
  const visit = (level: Level): void => {
    if (sound.has(level)) return;
    const start = chain.indexOf(level);
    if (start >= 0) refuseCycle([...chain.slice(start), level]);
    chain.push(level);
    for (const [, given] of needsOf(level)) if (given !== undefined) visit(given);
    chain.pop();
    sound.add(level);
  };
  for (const root of roots) visit(root);
}

/**
 * @param provider what errors call it
 * @throws DatError DAT_MODEL_NOT_SUPPORTED
 */
export function refuseMissing(
  needing: Level | 'core',
  token: Token<unknown>,
  provider: string,
): never {
  const name = nameOf(token);
  const title = needing === 'core' ? needing : needing.title;
  const isOwn = needing !== 'core' && needing.token === token;
  throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
    operation: 'openIa',
    message: isOwn
      ? `${title} wraps ${name}, and ${provider} has none to be wrapped`
      : `${title} needs ${name}, and ${provider} has none`,
    value: name,
  });
}

export function nameOf(token: Token<unknown>): string {
  return token.description ?? String(token);
}

function refuseCycle(chain: readonly Level[]): never {
  const names = chain.map(({ title }) => title);
  throw new DatError('DAT_MODEL_NOT_SUPPORTED', {
    operation: 'openIa',
    message: `a module would be made of itself: ${names.join(' needs ')}`,
    hint: 'one of them must do without the other',
    value: names,
  });
}
