/** What is mutated, and by which quick tests a mutant must be noticed. */

export interface Area {
  /** Folder, or file without its extension; below the root, as tests and sources lie in `dist`. */
  readonly files: readonly string[];
  /** Folders below those, which are areas of their own. */
  readonly except?: readonly string[];
  /** Below test/unit; a folder stands for all of its quick tests. */
  readonly tests: readonly string[];
}

/** First those that notice most. */
const RC_TESTS = [
  'rc-answers',
  'rc-atomics',
  'rc-credits',
  'rc-read-repeats',
  'rc-messages',
  'ack-behind-answer',
  'memory-window-invalidation',
  'queue-pair',
  'rc-ack-requests',
  'rc-duplicates',
  'rc-edges',
  'rc-errors',
  'rc-zero-copy-reads',
  'rc-receiver-wait',
  'rc-refusal',
  'rc-transfer',
  'rc-wire',
  'xrc',
  'xrc-errors',
];

export const AREAS: Readonly<Record<string, Area>> = {
  'core/evd': {
    files: ['core/evd'],
    tests: ['evd', 'rx/upcalls', 'rx/upcall-pauses', 'rx/upcalls-torndown'],
  },
  'core/flow': { files: ['core/flow'], except: ['core/flow/channel'], tests: ['flow'] },
  'core/flow/channel': { files: ['core/flow/channel'], tests: ['flow/channel'] },
  'core/rx': { files: ['core/rx'], tests: ['rx'] },
  'plugins/easy': { files: ['plugins/easy'], tests: ['easy'] },
  'plugins/mad': { files: ['plugins/mad'], tests: ['mad'] },
  'plugins/xrc': { files: ['plugins/xrc'], tests: ['xrc', 'dat/xrc-requests'] },
  'providers/hca/rc': {
    files: [
      'connected/message-receiver',
      'rc/zero-copy-reads',
      'rc/reads',
      'rc/responder',
      'rc/responder-resources',
      'rc/response-queue',
    ].map((file) => `providers/hca/${file}`),
    tests: RC_TESTS.map((test) => `hca/${test}`),
  },
};
