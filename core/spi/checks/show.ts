/** A value in a message: short, on one line, and never throwing. */
export function show(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value);
    case 'bigint':
      return `${value}n`;
    case 'function':
      return 'a function';
    case 'object':
      return value === null ? 'null' : describeObject(value);
    default:
      return String(value);
  }
}

function describeObject(value: object): string {
  if (Array.isArray(value)) return `an array of ${value.length}`;
  const constructor: unknown = value.constructor;
  const name = typeof constructor === 'function' ? constructor.name : 'Object';
  return name === 'Object' ? 'an object' : `a ${String(name)}`;
}
