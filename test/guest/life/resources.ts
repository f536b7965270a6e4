// What this process holds in the kernel, and of memory.
import { execFileSync } from 'node:child_process';

import { paused } from '../../support/patience.js';

export interface Resources {
  /** By kind (pd, cq, qp, cm_id, mr, ctx, srq), of the whole guest. */
  readonly objects: Readonly<Record<string, number>>;
  readonly rssBytes: number;
}

/** Of a device, by `rdma resource show`. */
export function objectsOf(device: string): Record<string, number> {
  const text = execFileSync('rdma', ['resource', 'show', device], { encoding: 'utf8' });
  const pairs = [...text.matchAll(/\b([a-z_]+) (\d+)/g)];
  return Object.fromEntries(pairs.map(([, kind, count]) => [String(kind), Number(count)]));
}

/** When nothing has gone for a second: identifiers of connections linger in the kernel. */
export async function settledResources(device: string): Promise<Resources> {
  let objects = objectsOf(device);
  for (let same = 0; same < 4;) {
    await paused(250);
    const now = objectsOf(device);
    same = JSON.stringify(now) === JSON.stringify(objects) ? same + 1 : 0;
    objects = now;
  }
  globalThis.gc?.();
  globalThis.gc?.();
  return { objects, rssBytes: process.memoryUsage().rss };
}
