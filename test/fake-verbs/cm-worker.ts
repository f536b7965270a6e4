/** A thread with connections and a listener, which says when it has them and then waits. */
import { parentPort } from 'node:worker_threads';
import { CmHost } from './cm-host.js';

const host = new CmHost({}, 'fake0', false);
await host.pair();
host.listen(() => undefined);
host.connect();
parentPort?.postMessage('ready');
setInterval(() => undefined, 1000);
