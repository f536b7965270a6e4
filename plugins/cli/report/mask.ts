/** Masks whatever in a text identifies a machine or its owner. */
import { homedir, hostname, networkInterfaces, userInfo } from 'node:os';

/** A word of this machine, and its replacement. */
export interface Private {
  readonly word: string;
  readonly mask: string;
}

/** Shorter words would match parts of other words. */
const SHORTEST = 3;

/** Names and addresses of this machine and its user. */
export function privateWords(): Private[] {
  const host = hostname();
  const interfaces = Object.entries(networkInterfaces());
  return [
    { word: homedir(), mask: '<home>' },
    { word: host, mask: '<host>' },
    { word: host.replace(/\..*/, ''), mask: '<host>' },
    { word: userName(), mask: '<user>' },
    ...interfaces.map(([word]) => ({ word, mask: '<interface>' })),
    ...interfaces.flatMap(([, addresses = []]) =>
      addresses.flatMap(({ address, mac }) => [
        { word: address, mask: '<address>' },
        { word: mac, mask: '<MAC>' },
      ]),
    ),
  ];
}

/** The user's name; '' for a user without an entry in the system's list, as in a container. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return '';
  }
}

/** Patterns of addresses and device numbers of any machine, tried in this order. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{2}(?::[0-9a-f]{2}){5,19}\b/gi, '<MAC>'],
  [/(?<![\w:])(?:[0-9a-f]{4}:){3}[0-9a-f]{4}(?![\w:])/gi, '<GUID>'],
  [/(?<![\w:.])(?:[0-9a-f]{0,4}:){2,7}(?:\d+(?:\.\d+){3}|[0-9a-f]{0,4})(?:%\w+)?/gi, '<address>'],
  [/\b(?:0x)?[0-9a-f]{16}\b/gi, '<GUID>'],
  [/\b\d{1,3}(?:\.\d{1,3}){3}\b/g, '<address>'],
  [/(?<![\w.>])\/(?:home|root|Users|tmp|var|mnt|srv)\/[^\s'",)]*/g, '<path>'],
];

/** Masks the words, wherever they stand alone. */
export function maskWords(text: string, words: readonly Private[]): string {
  return [...words]
    .filter(({ word }) => word.length >= SHORTEST)
    .sort((a, b) => b.word.length - a.word.length)
    .reduce((masked, { word, mask }) => {
      const escaped = word.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
      return masked.replace(new RegExp(`(?<![\\w-])${escaped}(?![\\w-])`, 'g'), mask);
    }, text);
}

/** Masks free text: the words, and everything that looks like an address, a GUID or a path. */
export function maskText(text: string, words: readonly Private[]): string {
  return PATTERNS.reduce(
    (masked, [pattern, mask]) => masked.replace(pattern, mask),
    maskWords(text, words),
  );
}
