/** How much memory the process holds on to, after the garbage has gone. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** What nothing refers to any more is gone, finalizers' work too. */
export async function collectGarbage(): Promise<void> {
  for (let i = 0; i < 3; i++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Bytes of JavaScript objects and of their ArrayBuffers. */
export async function heldBytes(): Promise<number> {
  await collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
