/** Listens until its thread is ended. */
import { parentPort, workerData } from 'node:worker_threads';
import { nativeAddon } from './addon.js';

const listener = nativeAddon().listenUnix(workerData as string, 4);
listener.watch(() => undefined);
setInterval(() => listener, 1_000_000);
parentPort?.postMessage('listens');
