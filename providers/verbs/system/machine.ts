/** Facts of this process and machine that explain a refusal; read after a failure. */
import { statSync } from 'node:fs';
import { userInfo } from 'node:os';
import type { DeviceNode, LockedMemory } from './errors.js';
import { textOf } from './sysfs.js';

/** Reads RLIMIT_MEMLOCK of this process, and its locked or pinned memory. */
export function lockedMemory(proc = '/proc/self'): LockedMemory {
  const limit = /^Max locked memory\s+(\S+)/m.exec(textOf(`${proc}/limits`))?.[1];
  const status = textOf(`${proc}/status`);
  const kib = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0);
  return {
    limitBytes: limit === undefined || limit === 'unlimited' ? Infinity : Number(limit),
    // mlock and RDMA are counted apart, and each alone is held against the limit.
    lockedBytes: kib('VmPin') * 1024,
  };
}

/** @param path such as `/dev/infiniband/uverbs0` */
export function deviceNode(path: string, module: string, etc = '/etc'): DeviceNode {
  const groupFile = textOf(`${etc}/group`);
  const nameOf = (id: number): string => nameById(groupFile, id);
  const base = {
    path,
    module,
    user: userName(),
    groups: (process.getgroups?.() ?? []).map(nameOf),
  };
  try {
    const { mode, uid, gid } = statSync(path);
    const owner = nameById(textOf(`${etc}/passwd`), uid);
    return { ...base, facts: { mode: mode & 0o7777, owner, group: nameOf(gid) } };
  } catch {
    return base;
  }
}

/** Name in a file like /etc/passwd, whose third field is the number; else the number. */
function nameById(file: string, id: number): string {
  for (const line of file.split('\n')) {
    const [name = '', , number] = line.split(':');
    if (number === String(id)) return name;
  }
  return String(id);
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? '?'}`;
  }
}
