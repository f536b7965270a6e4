/** Has descriptors of every kind when its thread is ended: a copy of a socket, a table. */
import { parentPort, workerData } from 'node:worker_threads';
import { nativeAddon } from './addon.js';

const { descriptor, name } = workerData as { descriptor: number; name: string };
nativeAddon().duplicate(descriptor);
const table = nativeAddon().createSharedTable('dapl-test', 4096);
const socket = nativeAddon().connectUnix(name);
socket.watch(() => {
  if (socket.take()) parentPort?.postMessage('has them');
});
setInterval(() => table, 1_000_000);
