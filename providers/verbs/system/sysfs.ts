/** Reads files of the system synchronously; one that is missing or not readable is empty. */
import { readFileSync, readdirSync } from 'node:fs';

export function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

export function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}
