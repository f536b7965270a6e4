// RDMA READ and WRITE in single requests of every kind of size, against librdmacm and libibverbs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import type { Guest } from '../guest.js';
import { PATH_MTUS } from '../lab.js';
import type { Lab } from '../lab.js';
import { sourceDir } from '../paths.js';
import { runDir } from '../sandbox.js';
import type { Case } from '../suite.js';
import { captured, startPeer, transcript } from './captured.js';

export const MEMORY_PORT = 7500;
const START_TIMEOUT_MS = 15_000;
const RUN_TIMEOUT_MS = 60_000;
const LARGEST_BYTES = (1 << 20) + 3;
/** Room for one size at the bottom, and one from the middle on. */
const MEMORY_BYTES = 2 * LARGEST_BYTES + 16;

export function memoryCases(lab: Lab, version: string): Case[] {
  return PATH_MTUS.flatMap((mtuBytes) =>
    (['client', 'server'] as const).map((role) => {
      const sizes = [0, 1, mtuBytes - 1, mtuBytes, mtuBytes + 1, LARGEST_BYTES];
      return {
        name: `memory, our ${role}, MTU ${mtuBytes}, 0 B to 1 MiB+3, unaligned`,
        row: {
          counterpart: 'memory-peer (librdmacm)',
          version,
          role: role === 'client' ? 'requester' : 'responder',
          transport: 'rdma_cm, RC, IPv4, READ and WRITE, 0 B to 1 MiB+3',
          mtuBytes,
        },
        run: async () => {
          await lab.setPathMtu(mtuBytes);
          await captured(lab, lab.guest(0), `memory-${role}-${mtuBytes}`, () =>
            role === 'client' ? ourRequester(lab, sizes) : ourResponder(lab, sizes),
          );
        },
      };
    }),
  );
}

export function putMemoryPeer(guest: Guest): string {
  return putPeer(guest, 'memory-peer');
}

/** Compiles a program of ours once a run and puts it into a guest; returns its path there. */
export function putPeer(guest: Guest, name: string): string {
  const program = join(runDir, name);
  if (!existsSync(program)) {
    const source = join(sourceDir, `${name}.c`);
    const flags = ['-O2', '-Wall', '-Wextra', '-Werror'];
    execFileSync('gcc', [...flags, '-o', program, source, '-lrdmacm', '-libverbs']);
  }
  return guest.put(program);
}

async function ourRequester(lab: Lab, sizes: readonly number[]): Promise<void> {
  const guest = lab.guest(0);
  const program = putMemoryPeer(guest);
  const serving = guest.spawn(`${program} serve ${guest.ipv4} ${MEMORY_PORT} ${MEMORY_BYTES}`);
  try {
    await serving.waitForOutput(/listening/, START_TIMEOUT_MS);
    const peer = startPeer(lab, `memory-client ${guest.ipv4} ${sizes.join(' ')}`);
    const client = await peer.finish(RUN_TIMEOUT_MS);
    assert.equal(client.code, 0, transcript(client));
    assert.equal(client.stdout, sizes.map((size) => `done ${size}\n`).join(''));
    const served = await serving.finish();
    assert.equal(served.code, 0, transcript(served));
    // What the kernel's side finds in its own memory, beside what we have read back from it.
    const hash = hashOf(expectedMemory()).toString(16).padStart(8, '0');
    assert.equal(served.stdout, `listening\nhash ${hash}\n`);
  } finally {
    serving.kill();
  }
}

async function ourResponder(lab: Lab, sizes: readonly number[]): Promise<void> {
  const guest = lab.guest(0);
  const program = putMemoryPeer(guest);
  const serving = startPeer(lab, `memory-server ${lab.host.ipv4} ${MEMORY_BYTES}`);
  try {
    await serving.waitForOutput(/listening/, START_TIMEOUT_MS);
    const drive = `${program} drive ${lab.host.ipv4} ${MEMORY_PORT} ${sizes.join(' ')}`;
    const client = await guest.run(drive, { timeoutMs: RUN_TIMEOUT_MS });
    assert.equal(client.code, 0, transcript(client));
    assert.equal(client.stdout, sizes.map((size) => `done ${size}\n`).join(''));
    const served = await serving.finish();
    assert.match(served.stdout, /^DISCONNECTED/m, transcript(served));
  } finally {
    serving.kill();
  }
}

/** The pattern, with its largest piece (from byte 1 on) copied to the middle. */
function expectedMemory(): Uint8Array {
  const bytes = Uint8Array.from({ length: MEMORY_BYTES }, (_, at) => (at * 7 + (at >> 8)) & 0xff);
  bytes.copyWithin(MEMORY_BYTES / 2, 1, 1 + LARGEST_BYTES);
  return bytes;
}

/** FNV-1a of 32 bits. */
function hashOf(bytes: Uint8Array): number {
  let hash = 2166136261;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
  return hash;
}
