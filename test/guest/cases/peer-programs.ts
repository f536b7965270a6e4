// The kernel's ends that are programs of one file each: compiled by the run that wants them.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import type { Guest } from '../guest.js';
import { sourceDir } from '../paths.js';
import { runDir } from '../sandbox.js';

export const MEMORY_PORT = 7500;

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
