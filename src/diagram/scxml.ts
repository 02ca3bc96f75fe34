import { expectArgument, objectRule } from '../core/base/expect-argument.js'
import { escapeXml } from './state-card.js'
import {
  type Chart,
  type ChartState,
  type ChartTransition,
  createUniqueNames,
  flattenStates,
} from './chart.js'

/**
 * The machine as W3C SCXML. Guards are `cond` and actors are `src` by their names, actions are elements of a namespace
 * of ours, so the document says what happens but brings no code. `onDone` and `onError` of an invoked actor are the
 * events `done.invoke.ID` and `error.platform.ID`; the machine itself is the outermost state, for SCXML has no
 * transitions at its root.
 *
 * @example await writeFile('machine.scxml', toScxml(toChart(machine)))
 */
export function toScxml(chart: Chart): string {
  expectArgument('toScxml(chart)', chart, objectRule(['root'], 'a chart: what toChart(machine) returned'))
  const getName = createUniqueNames(flattenStates(chart.root), (id) =>
    id === '(root)' ? toXmlName(chart.id) : toXmlName(id),
  )

  function writeState(state: ChartState, indent: string): string[] {
    if (state.type === 'history') return writeHistory(state, indent)
    const tag = state.type === 'parallel' || state.type === 'final' ? state.type : 'state'
    const initial = state.type === 'compound' ? { initial: state.initial.map(getName).join(' ') } : {}
    const timers = [
      ...new Set(state.transitions.map(({ event }) => event).filter((event) => parseDelay(event) !== null)),
    ]
    const content = [
      ...formatBlock('onentry', [...state.entry.map(formatAction), ...timers.map(formatTimer)]),
      ...formatBlock('onexit', [
        ...state.exit.map(formatAction),
        ...timers.map((id) => formatElement('cancel', { sendid: id })),
      ]),
      ...state.invokes.map((invoke) => formatElement('invoke', { id: invoke.id, src: invoke.src })),
      ...state.transitions.flatMap(writeTransition),
    ].map((line) => `${indent}  ${line}`)
    return [
      `${indent}<${tag}${formatAttributes({ id: getName(state.id), ...initial })}>`,
      ...content,
      ...state.states.flatMap((child) => writeState(child, `${indent}  `)),
      `${indent}</${tag}>`,
    ]
  }

  /** SCXML wants to be told where a history leads that has none. */
  function writeHistory(state: ChartState, indent: string): string[] {
    return [
      `${indent}<history${formatAttributes({ id: getName(state.id), type: state.history ?? 'shallow' })}>`,
      `${indent}  ${formatElement('transition', { target: state.initial.map(getName).join(' ') })}`,
      `${indent}</history>`,
    ]
  }

  function writeTransition({ event, targets, when, actions, reenter }: ChartTransition): string[] {
    const given = formatAttributes({
      ...(event !== '' && { event: toScxmlEvent(event) }),
      ...(when !== null && when !== 'else' && { cond: when }),
      ...(targets.length > 0 && { target: targets.map(getName).join(' ') }),
      ...(targets.length > 0 && !reenter && { type: 'internal' }),
    })
    if (actions.length === 0) return [`<transition${given}/>`]
    return [`<transition${given}>`, ...actions.map((name) => `  ${formatAction(name)}`), '</transition>']
  }

  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<scxml${formatAttributes({
      xmlns: 'http://www.w3.org/2005/07/scxml',
      'xmlns:statewright': 'https://www.npmjs.com/package/statewright',
      version: '1.0',
      name: toXmlName(chart.id),
      initial: getName('(root)'),
    })}>`,
    ...writeState(chart.root, '  '),
    '</scxml>',
    '',
  ].join('\n')
}

function formatAction(name: string): string {
  return formatElement('statewright:action', { name })
}

function formatBlock(tag: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`<${tag}>`, ...lines.map((line) => `  ${line}`), `</${tag}>`]
}

/** The delay of `xstate.after.DELAY.ID`: milliseconds, or a name; null for other events. */
function parseDelay(event: string): string | null {
  return /^xstate\.after\.([^.]+)\./.exec(event)?.[1] ?? null
}

function formatTimer(event: string): string {
  const delay = parseDelay(event) ?? ''
  return formatElement('send', {
    event,
    id: event,
    ...(/^\d+$/.test(delay) ? { delay: `${delay}ms` } : { delayexpr: delay }),
  })
}

function toScxmlEvent(event: string): string {
  return event
    .replace(/^xstate\.done\.actor\./, 'done.invoke.')
    .replace(/^xstate\.error\.actor\./, 'error.platform.')
    .replace(/^xstate\.done\.state\./, 'done.state.')
}

/** A name that XML allows for an id. */
function toXmlName(id: string): string {
  const name = id.replaceAll(/[^\w.-]/g, '_')
  return /^[A-Za-z_]/.test(name) ? name : `_${name}`
}

function formatElement(tag: string, given: Readonly<Record<string, string>>): string {
  return `<${tag}${formatAttributes(given)}/>`
}

function formatAttributes(given: Readonly<Record<string, string>>): string {
  return Object.entries(given)
    .map(([name, value]) => ` ${name}="${escapeXml(value)}"`)
    .join('')
}
