/** Where the two adapters of a life are. */
export const LIFE_ADDRESSES = ['198.51.100.1', '198.51.100.2'] as const;
export const [, PASSIVE] = LIFE_ADDRESSES;
export const CONN_QUAL = 7700;
