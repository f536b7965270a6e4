/**
 * The ia_params field of dat.conf in our providers' format: words for the device and its port, as
 * in OpenFabrics' entries, then `name=value` options.
 */
import { checkValue, kindOf, show, withNearest } from '../checks/index.js';
import { einval } from '../errors/einval.js';
import { SpiError } from '../errors/spi-error.js';

const STRING = kindOf<string>('a string', (value) => typeof value === 'string');

export interface IaParams<Name extends string = string> {
  /** The words before the first option: `["eth0", "0"]`. */
  readonly words: readonly string[];
  /** The options that are given, by name. */
  readonly options: Readonly<Partial<Record<Name, string>>>;
}

/**
 * @param known names of options
 * @throws SpiError('EINVAL') for an option that is unknown, without a value or given twice, and for
 * a word that follows an option
 */
export function readIaParams<const Name extends string>(
  iaParams: string,
  known: readonly Name[],
): IaParams<Name> {
  checkValue('ia_params', iaParams, STRING, einval);
  const words: string[] = [];
  // Without a prototype, whose members would be read for absent names.
  const options = Object.create(null) as Partial<Record<string, string>>;
  for (const item of iaParams.split(/\s+/).filter(Boolean)) {
    const [, name, value] = /^([A-Za-z]\w*)=(.*)$/.exec(item) ?? [];
    if (name === undefined || value === undefined) {
      if (Object.keys(options).length > 0) throw refused(item, 'words come before options');
      words.push(item);
      continue;
    }
    if (!(known as readonly string[]).includes(name)) {
      const why = known.length === 0 ? 'there are no options' : `options are ${known.join(', ')}`;
      throw refused(item, withNearest(why, name, known));
    }
    if (options[name] !== undefined) throw refused(item, `${name} is given twice`);
    if (value === '') throw refused(item, `${name} has no value`);
    options[name] = value;
  }
  return { words, options: Object.freeze(options) };
}

/** The integer value of an option; undefined when it is not given. */
export function integerOption<Name extends string>(
  params: IaParams<Name>,
  name: NoInfer<Name>,
): number | undefined {
  const text = params.options[name];
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw refused(`${name}=${text}`, 'it must be a whole number');
  return Number(text);
}

function refused(item: string, why: string): SpiError {
  return new SpiError('EINVAL', `ia_params ${show(item)}: ${why}`);
}
