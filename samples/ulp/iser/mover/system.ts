/** Services of Node.js that sessions are given: MD5 and timers. */
import { createHash } from 'node:crypto';

/** MD5 for CHAP. A system in FIPS mode refuses it. */
export function md5(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(createHash('md5').update(bytes).digest());
}

/** The reason that CHAP cannot be used in this process; undefined if it can. */
export function md5Refusal(): string | undefined {
  try {
    md5(new Uint8Array(0));
    return undefined;
  } catch (error) {
    const why = `this process has no MD5 (${(error as Error).message})`;
    return `chap needs MD5, and ${why}: leave chap out, or run without FIPS mode`;
  }
}

/** Timers of this process in the form that sessions take. They do not keep the process alive. */
export function alarm(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms).unref();
  return () => clearTimeout(timer);
}
