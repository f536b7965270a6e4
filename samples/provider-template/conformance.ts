/**
 * Runs the suites of `dapl/testing` over this provider, without a test runner; fails if any fails.
 */
import { openIa } from 'dapl';
import {
  reportOf,
  runDevice,
  runPacketPort,
  runProvider,
  tableOf,
  type BehaviourResult,
} from 'dapl/testing';
import { createLink, threads, ThreadPort, type ThreadPortOptions } from './index.js';

const ACTIVE = '10.0.0.1';
const PASSIVE = '10.0.0.2';

/** Both ends in one thread: the link between them is the same. */
function ends(): readonly [ThreadPortOptions, ThreadPortOptions] {
  const [one, other] = createLink();
  return [
    { link: one, address: ACTIVE, peer: PASSIVE },
    { link: other, address: PASSIVE, peer: ACTIVE },
  ];
}

/** `npm test -- quick`: the port and the device, and the features that the provider supports. */
const isQuick = process.argv.includes('quick');
const results: BehaviourResult[] = [
  ...(await runPacketPort({
    capabilities: ['ipv4'],
    openPair: async () => {
      const [a, b] = ends();
      return { a: new ThreadPort(a), b: new ThreadPort(b) };
    },
  })),
  ...(await runDevice({
    capabilities: [
      'uc',
      'ud',
      'atomic',
      'send-with-invalidate',
      'shared-receive-queue',
      'memory-window',
      'rdma-read',
      'solicited',
    ],
    openPair: async () => {
      const [active, passive] = ends();
      return { active: threads(active), passive: threads(passive) };
    },
  })),
  ...(await runProvider(
    {
      capabilities: [
        'latency',
        'refusal-reasons',
        'service-id',
        'rdma-read',
        'shared-receive-queue',
        'atomic',
        'send-with-invalidate',
        'memory-window',
        'ud',
      ],
      openPair: async () => {
        const [one, other] = ends();
        const active = await openIa(threads(one));
        const passive = await openIa(threads(other));
        return {
          active,
          passive,
          passiveAddress: PASSIVE,
          close: async () => {
            await Promise.all([active.close(), passive.close()]);
          },
        };
      },
    },
    isQuick ? { filter: (title) => title.startsWith('Transferring') } : {},
  )),
];

const report = reportOf('dapl-provider-threads', results);
console.log(process.argv.includes('json') ? JSON.stringify(report) : tableOf(report));
process.exitCode = report.counts.failed === 0 ? 0 : 1;
