// Runs in the guest: starts and kills commands for the harness. Its only argument is the
// virtio-serial device.
import { spawn } from 'node:child_process';
import { openSync, read, writeSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';

import { type FromAgent, LineParser, type ToAgent } from './protocol.js';

const device = process.argv[2];
if (device === undefined) throw new Error('usage: agent <virtio-serial device>');
// A port can be opened once only, so one descriptor serves both directions.
const port = openSync(device, 'r+');
const running = new Map<number, number>();

function send(message: FromAgent): void {
  const bytes = Buffer.from(`${JSON.stringify(message)}\n`);
  for (let sent = 0; sent < bytes.length;) sent += writeSync(port, bytes, sent);
}

function start(
  id: number,
  command: string,
  cwd: string,
  env: Readonly<Record<string, string>>,
): void {
  const child = spawn('/bin/sh', ['-c', command], {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    cwd,
    env: { ...process.env, ...env },
  });
  if (child.pid !== undefined) running.set(id, child.pid);
  child.stdout.setEncoding('utf8').on('data', (text: string) => send({ op: 'stdout', id, text }));
  child.stderr.setEncoding('utf8').on('data', (text: string) => send({ op: 'stderr', id, text }));
  child.on('error', (error) => {
    send({ op: 'stderr', id, text: error.message });
    send({ op: 'exit', id, code: 127, signal: null });
  });
  child.on('close', (code, signal) => {
    running.delete(id);
    send({ op: 'exit', id, code, signal });
  });
}

function kill(id: number, signal: NodeJS.Signals): void {
  const pid = running.get(id);
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {
    // The group has ended by itself; its exit is reported anyway.
  }
}

const parser = new LineParser<ToAgent>();
const decoder = new StringDecoder('utf8');
const buffer = Buffer.alloc(65536);

function receive(): void {
  read(port, buffer, 0, buffer.length, null, (error, count) => {
    // Nothing to read means that the harness is gone: leaving lets the guest power off.
    if (error !== null || count === 0) process.exit(0);
    parser.push(decoder.write(buffer.subarray(0, count)), (message) => {
      if (message.op === 'spawn') start(message.id, message.command, message.cwd, message.env);
      else kill(message.id, message.signal);
    });
    receive();
  });
}

send({ op: 'ready' });
receive();
