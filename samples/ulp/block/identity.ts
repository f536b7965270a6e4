/**
 * The serial number of a disk image. It is kept with the image: in an extended attribute, or in a
 * sidecar file if attributes cannot be written. Initiators take two disks with the same serial
 * number for two paths to one disk, so a copy must get a new one.
 */
import { type FileHandle, readFile, realpath, writeFile } from 'node:fs/promises';

/** Extended attributes of an open file, which Node does not offer. */
export interface FileAttributes {
  /** `null` if there is no such attribute. */
  get(fd: number, name: string): Promise<Uint8Array | null>;
  set(fd: number, name: string, value: Uint8Array): Promise<void>;
}

export interface ImageParts {
  readonly path: string;
  readonly file: FileHandle;
  readonly attributes: FileAttributes | undefined;
  /** Receives a sentence about a copy, and about a number that cannot be kept. */
  readonly onNote: (note: string) => void;
}

/** A place for the record. */
interface Place {
  readonly name: string;
  /** Undefined if there is no record. */
  read(): Promise<string | undefined>;
  write(record: string): Promise<void>;
}

/** The identity of the file: a copy has the same record, but another device or inode. */
interface IdentityRecord {
  readonly serial: string;
  readonly device: string;
  readonly inode: string;
}

const ATTRIBUTE = 'user.dapl.disk';
const SIDECAR_SUFFIX = '.identity';

/** 32 random hexadecimal digits. */
export function newSerial(): string {
  return crypto.randomUUID().replaceAll('-', '');
}

/** The attributes of fs-native-extensions, an optional dependency. */
export async function systemAttributes(): Promise<FileAttributes | undefined> {
  try {
    const { getAttr: get, setAttr: set } = await import('fs-native-extensions');
    return { get, set };
  } catch {
    return undefined;
  }
}

/** The serial number of the image, or a new one. @throws Error if the record cannot be read */
export async function serialOf({ path, file, attributes, onNote }: ImageParts): Promise<string> {
  const { dev, ino } = await file.stat({ bigint: true });
  const [device, inode] = [String(dev), String(ino)];
  const places = [...attributePlaces(path, file, attributes), sidecarOf(await realpath(path))];
  let isCopy = false;
  for (const place of places) {
    const text = await place.read();
    if (text === undefined || text.trim() === '') continue;
    const record = parse(text, place.name);
    if (record.device === device && record.inode === inode) return record.serial;
    isCopy = true;
  }
  const serial = newSerial();
  const refusal = await keep(places, JSON.stringify({ serial, device, inode }));
  if (isCopy) onNote(`${path} is a copy: it gets a serial number of its own, ${serial}`);
  if (refusal !== undefined) {
    const why = `${path} cannot keep its serial number (${refusal})`;
    onNote(`${why}: it has another one after a restart, unless you give one`);
  }
  return serial;
}

/** Stores the record in the first place that accepts it. @returns the reason that none did */
async function keep(places: readonly Place[], record: string): Promise<string | undefined> {
  let refusal = '';
  for (const place of places) {
    try {
      await place.write(record);
      return undefined;
    } catch (error) {
      refusal = (error as Error).message;
    }
  }
  return refusal;
}

function attributePlaces(
  path: string,
  { fd }: FileHandle,
  attributes: FileAttributes | undefined,
): Place[] {
  if (attributes === undefined) return [];
  const read = async (): Promise<string | undefined> => {
    try {
      const value = await attributes.get(fd, ATTRIBUTE);
      return value === null ? undefined : new TextDecoder().decode(value);
    } catch {
      // The file system has no attributes.
      return undefined;
    }
  };
  const write = (record: string): Promise<void> =>
    attributes.set(fd, ATTRIBUTE, new TextEncoder().encode(record));
  return [{ name: `the attribute ${ATTRIBUTE} of ${path}`, read, write }];
}

function sidecarOf(path: string): Place {
  const name = `${path}${SIDECAR_SUFFIX}`;
  const read = async (): Promise<string | undefined> => {
    try {
      return await readFile(name, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  };
  return { name, read, write: (record) => writeFile(name, `${record}\n`, { flush: true }) };
}

function parse(text: string, where: string): IdentityRecord {
  try {
    const { serial, device, inode } = JSON.parse(text) as Partial<Record<string, unknown>>;
    if (typeof serial === 'string' && typeof device === 'string' && typeof inode === 'string') {
      return { serial, device, inode };
    }
  } catch {
    // It is said below.
  }
  const shown = JSON.stringify(text.slice(0, 64));
  throw new Error(`${where} has no identity in it but ${shown}: remove it, and there is a new one`);
}
