/** Whose devices `dapl test` can look at, by a word; any other one is the provider of a package. */
export const PROVIDERS = ['verbs', 'softroce', 'mock'] as const;
