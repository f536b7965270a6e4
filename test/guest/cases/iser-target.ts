// Linux's initiator (open-iscsi over ib_iser) in a guest, our target on the host: a file system on
// a disk that a Node process serves.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { RunningCommand } from '../command.js';
import type { Guest } from '../guest.js';
import { impair, type Impairment, repair } from '../impair.js';
import type { Lab } from '../lab.js';
import { repositoryRoot } from '../paths.js';
import { runDir } from '../sandbox.js';
import type { Case } from '../suite.js';

const NAME = 'iqn.2026-01.io.dapl:guest';
const START_TIMEOUT_MS = 60_000;
const COMMAND_TIMEOUT_MS = 120_000;
const CASE_TIMEOUT_MS = 200_000;
const SECRETS = { chap: 'someone:one long secret', mutualChap: 'the disk:another long one' };

export function iserTargetCases(lab: Lab, version: string): Case[] {
  const row = (
    role: string,
    transport = 'iSER over rdma_cm, RC, IPv4',
  ): NonNullable<Case['row']> => ({
    counterpart: 'open-iscsi, ib_iser',
    version: `open-iscsi 2.1.8, ${version.replace(/^.*, /, '')}`,
    role,
    transport,
    mtuBytes: 4096,
  });
  return [
    {
      name: 'iser: open-iscsi makes a file system on our disk, and logs out',
      row: row('target: discovery, login, mkfs.ext4, a tree copied, fsck, logout'),
      timeoutMs: CASE_TIMEOUT_MS,
      run: () => fileSystem(lab, {}),
    },
    {
      name: 'iser: open-iscsi, CHAP both ways, IPv6, blocks of 4096, a wrong secret is refused',
      row: row('target: CHAP both ways, a wrong secret refused', 'iSER over rdma_cm, RC, IPv6'),
      full: true,
      timeoutMs: CASE_TIMEOUT_MS,
      run: () => authentication(lab),
    },
    {
      name: 'iser: open-iscsi makes a file system on our disk, packets get lost',
      row: row('target: a file system, with loss', 'iSER over rdma_cm, RC, IPv4, loss 1%'),
      full: true,
      isLong: true,
      timeoutMs: 2 * CASE_TIMEOUT_MS,
      run: () => fileSystem(lab, { outgoing: 'loss 1%', incoming: 'loss 1%' }),
    },
    {
      name: 'iser: our target is killed in mid-write and started again: open-iscsi recovers',
      row: row('target, killed and started again in mid-write'),
      full: true,
      isLong: true,
      timeoutMs: 2 * CASE_TIMEOUT_MS,
      run: () => killed(lab),
    },
    {
      name: 'iser: our target ends in good order while a disk is in use',
      row: row('target: SIGTERM, asynchronous logout'),
      full: true,
      timeoutMs: CASE_TIMEOUT_MS,
      run: () => drained(lab),
    },
  ];
}

async function fileSystem(lab: Lab, impairment: Impairment): Promise<void> {
  const guest = lab.guest(0);
  const image = join(runDir, 'iser.img');
  const target = await startTarget(lab, `--lun ${image} --size 64M --listen ${lab.host.ipv4}`);
  try {
    await startInitiator(guest);
    await discover(lab, guest);
    await impair(guest, impairment);
    await must(guest, `iscsiadm -m node -T ${NAME} -p ${lab.host.ipv4} -I iser --login`);
    const disk = await diskOf(guest);
    const sums = await must(
      guest,
      `mkfs.ext4 -q -E nodiscard ${disk} && mkdir -p /root/disk && mount ${disk} /root/disk && ` +
        `cp -r ${repositoryRoot}/core/evd /root/disk/ && cd /root/disk/evd && ` +
        'find . -type f | sort | xargs md5sum | md5sum && cd / && umount /root/disk && ' +
        `fsck.ext4 -n -f ${disk} >&2 && mount ${disk} /root/disk && cd /root/disk/evd && ` +
        'find . -type f | sort | xargs md5sum | md5sum && cd / && umount /root/disk',
    );
    const [written, read] = sums.trim().split('\n');
    assert.equal(read, written, 'what was read is what was written');
    await must(guest, `iscsiadm -m node -T ${NAME} --logout`);
  } finally {
    await repair(guest);
    await stopInitiator(guest);
    await stopTarget(target);
  }
}

async function authentication(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const { chap, mutualChap } = SECRETS;
  const portal = `[${lab.host.ipv6}]`;
  const accounts = `--chap '${chap}' --mutual-chap '${mutualChap}'`;
  const target = await startTarget(
    lab,
    `--memory 16M --block-bytes 4096 --listen ${portal} ${accounts}`,
  );
  try {
    await startInitiator(guest);
    const node = `iscsiadm -m node -T ${NAME} -p ${portal}:3260 -I iser`;
    await must(guest, `${node} -o new`);
    const refused = await guest.run(`${node} --login`);
    assert.notEqual(refused.code, 0, 'a login without CHAP is refused');
    const [name = '', secret = ''] = chap.split(':');
    const [targetName = '', targetSecret = ''] = mutualChap.split(':');
    const settings = {
      authmethod: 'CHAP',
      username: name,
      password: 'a wrong long secret',
      username_in: targetName,
      password_in: targetSecret,
    };
    for (const [key, value] of Object.entries(settings)) {
      await must(guest, `${node} -o update -n node.session.auth.${key} -v '${value}'`);
    }
    const wrong = await guest.run(`${node} --login`);
    assert.notEqual(wrong.code, 0, 'a wrong secret is refused');
    await must(guest, `${node} -o update -n node.session.auth.password -v '${secret}'`);
    await must(guest, `${node} --login`);
    const disk = await diskOf(guest);
    const size = await must(guest, `blockdev --getss --getsize64 ${disk}`);
    assert.deepEqual(size.trim().split('\n'), ['4096', String(16 << 20)]);
    await must(guest, `${node} --logout`);
  } finally {
    await stopInitiator(guest);
    await stopTarget(target);
  }
}

/** Blocks are written with O_DIRECT, each with its number; the target dies in the middle. */
async function killed(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const image = join(runDir, 'iser-killed.img');
  const how = `--lun ${image} --size 64M --listen ${lab.host.ipv4}`;
  let target = await startTarget(lab, how);
  try {
    await startInitiator(guest);
    await discover(lab, guest);
    await must(guest, `iscsiadm -m node -T ${NAME} -p ${lab.host.ipv4} -I iser --login`);
    const disk = await diskOf(guest);
    await must(guest, 'head -c 33554432 /dev/urandom > /root/bytes');
    const writing = guest.spawn(
      `for i in $(seq 0 127); do dd if=/root/bytes of=${disk} bs=256k count=1 skip=$i seek=$i ` +
        'oflag=direct conv=notrunc,fsync 2>/dev/null || exit 1; echo block $i; done',
    );
    await writing.waitForOutput(/block 20/, COMMAND_TIMEOUT_MS);
    target.kill('SIGKILL');
    await target.exited;
    target = await startTarget(lab, how);
    const done = await writing.finish(2 * COMMAND_TIMEOUT_MS);
    assert.equal(done.code, 0, done.stderr);
    const sum = await must(guest, 'md5sum < /root/bytes');
    await must(guest, `iscsiadm -m node -T ${NAME} --logout`);
    await stopTarget(target);
    const there = createHash('md5').update(readFileSync(image).subarray(0, 32 << 20));
    assert.equal(there.digest('hex'), sum.slice(0, 32), 'all that was acknowledged is there');
  } finally {
    await stopInitiator(guest);
    await stopTarget(target);
  }
}

async function drained(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const target = await startTarget(lab, `--memory 16M --listen ${lab.host.ipv4} --drain 20`);
  try {
    await startInitiator(guest);
    await discover(lab, guest);
    await must(guest, `iscsiadm -m node -T ${NAME} -p ${lab.host.ipv4} -I iser --login`);
    await diskOf(guest);
    target.kill('SIGTERM');
    const { code, stdout, stderr } = await target.finish(COMMAND_TIMEOUT_MS);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /asking initiators to log out/);
    assert.doesNotMatch(stdout, /was asked to log out, and did not/);
  } finally {
    await stopInitiator(guest);
    await stopTarget(target);
  }
}

async function startTarget(lab: Lab, options: string): Promise<RunningCommand> {
  const program = join(repositoryRoot, 'dist/plugins/cli/main.js');
  const command = `exec ${process.execPath} ${program} iser-target --name ${NAME} ${options}`;
  const target = lab.host.spawn(command);
  await target.waitForOutput(/^serving/m, START_TIMEOUT_MS);
  return target;
}

async function stopTarget(target: RunningCommand): Promise<void> {
  target.kill('SIGTERM');
  await target.finish(COMMAND_TIMEOUT_MS);
}

/** iscsid, with short times: the default replacement timeout is two minutes. */
async function startInitiator(guest: Guest): Promise<void> {
  await must(
    guest,
    'modprobe -a ib_iser sd_mod ext4 && mkdir -p /run/lock/iscsi /etc/iscsi && ' +
      'echo InitiatorName=iqn.2026-01.io.dapl:initiator > /etc/iscsi/initiatorname.iscsi && ' +
      'rm -rf /etc/iscsi/nodes /etc/iscsi/send_targets && (pidof iscsid >/dev/null || iscsid)',
  );
}

/**
 * The target's answers take their time: iscsiadm loses one that the kernel has before it tells that
 * the request was sent (it takes it in while it waits to be told, then waits for another one),
 * gives up after 30 s, and crashes. On a busy machine that was one discovery in twenty.
 */
async function discover(lab: Lab, guest: Guest): Promise<void> {
  await impair(guest, { outgoing: 'delay 100ms' });
  try {
    await must(guest, `iscsiadm -m discovery -t st -p ${lab.host.ipv4} -I iser`);
  } finally {
    await repair(guest);
  }
}

async function stopInitiator(guest: Guest): Promise<void> {
  if (!guest.isRunning) return;
  await guest.run(
    'umount /root/disk 2>/dev/null; iscsiadm -m node --logoutall=all 2>/dev/null; ' +
      'iscsiadm -k 0 2>/dev/null; true',
  );
}

/** The disk of the one session, when the kernel has found it. */
async function diskOf(guest: Guest): Promise<string> {
  const found = await must(
    guest,
    "for i in $(seq 100); do d=$(lsblk -ndo NAME,VENDOR | grep DAPL | cut -d' ' -f1); " +
      '[ -n "$d" ] && [ -b /dev/$d ] && { echo /dev/$d; exit 0; }; sleep 0.2; done; ' +
      'lsblk -o NAME,VENDOR >&2; dmesg | tail -20 >&2; exit 1',
  );
  return found.trim();
}

async function must(guest: Guest, command: string): Promise<string> {
  const { code, stdout, stderr } = await guest.run(command, { timeoutMs: COMMAND_TIMEOUT_MS });
  if (code === 0) return stdout;
  const log = await guest.run("dmesg | tail -30; ps -eo pid,stat,wchan:30,args | grep '[i]scsi'");
  assert.fail(`${command}: exit code ${code}\n${stdout}${stderr}${log.stdout}`);
}
