/** Whose devices `dapl test` can look at. */
export const PROVIDERS = ['verbs', 'softroce', 'mock'] as const;
export type ProviderName = (typeof PROVIDERS)[number];
