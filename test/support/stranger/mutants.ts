/** What may be wrong with the stranger's device, one at a time. */
export const DEVICE_MUTANTS = {
  'completes twice': 'a send has two completions',
  'completes out of order': 'two completions of a burst change places',
  'notifies inside a call': 'arming with completions waiting notifies at once',
  'notifies unarmed': 'every completion notifies',
  'overruns in silence': 'completions without room are lost, and nothing tells',
  'forgets to end its rings': 'the rings of a queue pair outlive it',
  'forgets to flush receives': 'receives of a queue pair in ERR never complete',
  'goes on behind a failure': 'requests behind a failed one are carried out',
  'checks the key of a region, not its end': 'writes may go beyond a region',
} as const;

export const CM_MUTANTS = {
  'establishes twice': 'a connection is reported established two times',
  'answers inside the call': 'a connection event comes from inside connect',
} as const;

export type Mutant = keyof typeof DEVICE_MUTANTS | keyof typeof CM_MUTANTS;
