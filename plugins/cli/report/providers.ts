/**
 * Providers that `dapl test` knows by name. Any other name is a package that exports a provider.
 */
export const PROVIDERS = ['verbs', 'softroce', 'mock'] as const;
