/** What a result was measured on, kept with it. */
import { spawnSync } from 'node:child_process';
import { arch, cpus, release } from 'node:os';

export interface RunDescription {
  readonly revision: string;
  readonly node: string;
  readonly machine: {
    readonly cpu: string;
    readonly cpus: number;
    readonly arch: string;
    readonly kernel: string;
  };
}

export function describeRun(): RunDescription {
  const all = cpus();
  const machine = {
    cpu: all[0]?.model ?? 'unknown',
    cpus: all.length,
    arch: arch(),
    kernel: release(),
  };
  const { stdout } = spawnSync('git', ['describe', '--always', '--dirty'], { encoding: 'utf8' });
  return { revision: stdout?.trim() || 'unknown', node: process.version, machine };
}
