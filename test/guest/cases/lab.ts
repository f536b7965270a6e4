// The lab's own promises: what the other cases rely on without looking.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Lab } from '../lab.js';
import { runDir } from '../sandbox.js';
import type { Case } from '../suite.js';

/** More than the pipes and the serial port hold. */
const MUCH_BYTES = 1_000_000;
const BOOT_AND_MORE_MS = 240_000;
const BEGIN_TIMEOUT_MS = 20_000;
const LATE_MS = 100;
const SMALL_PAIR = { memoryMiB: 768, cpus: 2 } as const;

export function labCases(lab: Lab): Case[] {
  return [
    { name: 'lab: commands give output, exit code and signal', run: () => commands(lab) },
    { name: 'lab: a late command is killed with all it started', run: () => lateCommand(lab) },
    { name: 'lab: files go to a guest and come back', run: () => files(lab) },
    {
      name: 'lab: a guest of another size; a power cut ends the commands of its guest only',
      timeoutMs: BOOT_AND_MORE_MS,
      run: () => powerCut(lab),
    },
  ];
}

async function commands(lab: Lab): Promise<void> {
  for (const machine of [lab.host, lab.guest(0)]) {
    const failing = await machine.run('echo "out é $WORD"; echo err >&2; exit 7', {
      env: { WORD: 'word' },
    });
    assert.deepEqual(failing, { code: 7, signal: null, stdout: 'out é word\n', stderr: 'err\n' });
    const much = await machine.run(`head -c ${MUCH_BYTES} /dev/zero | tr '\\0' x`);
    assert.equal(much.stdout, 'x'.repeat(MUCH_BYTES));
    const killed = await machine.spawn('kill -TERM $$').finish();
    assert.deepEqual([killed.code, killed.signal], [null, 'SIGTERM']);
  }
}

async function lateCommand(lab: Lab): Promise<void> {
  for (const machine of [lab.host, lab.guest(0)]) {
    const command = machine.spawn('echo begun; sleep 4321 & wait');
    await command.waitForOutput(/begun/, BEGIN_TIMEOUT_MS);
    await assert.rejects(command.finish(LATE_MS), /not done in 100 ms: begun/);
    const survivors = await machine.run('pgrep -f "[s]leep 4321"');
    assert.deepEqual([survivors.code, survivors.stdout], [1, ''], `${machine.name} still runs it`);
  }
}

async function files(lab: Lab): Promise<void> {
  const guest = lab.guest(0);
  const bytes = randomBytes(MUCH_BYTES);
  const [sent, returned] = [join(runDir, 'sent'), join(runDir, 'returned')];
  writeFileSync(sent, bytes);
  const path = guest.put(sent);
  const moved = await guest.run(`cp "${path}" /root/kept && rm "${path}"`);
  assert.equal(moved.code, 0, moved.stderr);
  await guest.get('/root/kept', returned);
  assert.ok(readFileSync(returned).equals(bytes), 'the file changed on its way');
}

async function powerCut(lab: Lab): Promise<void> {
  await lab.withGuest(SMALL_PAIR, async (guest) => {
    const size = await guest.run("nproc; awk '/MemTotal/ { print $2 }' /proc/meminfo; hostname");
    const [cpus, memoryKiB, name] = size.stdout.trim().split('\n');
    assert.deepEqual([cpus, name], [String(SMALL_PAIR.cpus), guest.name]);
    const memoryMiB = Number(memoryKiB) / 1024;
    assert.ok(memoryMiB > SMALL_PAIR.memoryMiB / 2 && memoryMiB <= SMALL_PAIR.memoryMiB);
    const met = await guest.run(`busybox ping -c 1 -W 5 ${lab.guest(0).ipv4}`);
    assert.equal(met.code, 0, met.stdout);
    const waiting = guest.spawn('sleep 1000');
    await guest.kill();
    assert.equal((await waiting.exited).signal, 'POWER_OFF');
    assert.equal((await guest.run('true')).signal, 'POWER_OFF');
    assert.equal((await lab.guest(0).run('true')).code, 0);
  });
}
