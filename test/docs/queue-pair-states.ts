/** Queue pairs, under the SPI: core/spi/device/qp-transitions.ts. */
import { nameOf, QpState, QpType, qpTransition } from '../../core/spi/index.js';
import { type Arrow, code, diagram, table } from './markdown.js';

interface Row {
  readonly from: string;
  readonly to: string;
  readonly required: string;
  readonly optional: string;
}

export function queuePairStates(): string[] {
  const rows = rowsOf(QpType.RC);
  const arrows = rows.map(({ from, to }): Arrow => ({ from, to, label: 'modify' }));
  return [
    '## Queue pair',
    [
      'Under the DAT API, for providers and their modules: `modify` of `dapl/spi`. What is',
      'missing, superfluous or of no transition is `SpiError` EINVAL, which names it. Every state',
      'goes to RESET, and every one but RESET to ERR, without attributes; those rows are left out.',
    ].join('\n'),
    diagram(arrows, 'RESET'),
    ...Object.entries(QpType).flatMap(([name, type]) => [
      `### ${name}`,
      table(
        ['From', 'To', 'Required', 'Optional'],
        rowsOf(type).map(({ from, to, required, optional }) => [from, to, required, optional]),
      ),
    ]),
  ];
}

function rowsOf(type: QpType): Row[] {
  const states = Object.values(QpState);
  return states.flatMap((from) =>
    states.flatMap((to): Row[] => {
      const transition = qpTransition(type, from, to);
      if (transition === undefined || to === QpState.RESET || to === QpState.ERR) return [];
      return [
        {
          from: nameOf(QpState, from),
          to: nameOf(QpState, to),
          required: transition.required.map(code).join(', '),
          optional: transition.optional.map(code).join(', '),
        },
      ];
    }),
  );
}
