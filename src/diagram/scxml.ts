import { expectArgument, objectWith } from '../core/base/expect-argument.js'
import { text } from './card.js'
import { type Chart, type ChartState, type ChartTransition, uniqueNames, withNested } from './chart.js'

/**
 * The machine as W3C SCXML. Guards are `cond` and actors are `src` by their names, actions are elements of a namespace
 * of ours, so the document says what happens but brings no code. `onDone` and `onError` of an invoked actor are the
 * events `done.invoke.ID` and `error.platform.ID`; the machine itself is the outermost state, for SCXML has no
 * transitions at its root.
 *
 * @example await writeFile('machine.scxml', toScxml(toChart(machine)))
 */
export function toScxml(chart: Chart): string {
  expectArgument('toScxml(chart)', chart, objectWith(['root'], 'a chart: what toChart(machine) returned'))
  const nameOf = uniqueNames(withNested(chart.root), (id) =>
    id === '(root)' ? xmlName(chart.id) : xmlName(id),
  )

  function write(state: ChartState, indent: string): string[] {
    if (state.type === 'history') return history(state, indent)
    const tag = state.type === 'parallel' || state.type === 'final' ? state.type : 'state'
    const initial = state.type === 'compound' ? { initial: state.initial.map(nameOf).join(' ') } : {}
    const timers = [
      ...new Set(state.transitions.map(({ event }) => event).filter((event) => delayOf(event) !== null)),
    ]
    const content = [
      ...block('onentry', [...state.entry.map(action), ...timers.map(startTimer)]),
      ...block('onexit', [
        ...state.exit.map(action),
        ...timers.map((id) => element('cancel', { sendid: id })),
      ]),
      ...state.invokes.map((invoke) => element('invoke', { id: invoke.id, src: invoke.src })),
      ...state.transitions.flatMap(transition),
    ].map((line) => `${indent}  ${line}`)
    return [
      `${indent}<${tag}${attributes({ id: nameOf(state.id), ...initial })}>`,
      ...content,
      ...state.states.flatMap((child) => write(child, `${indent}  `)),
      `${indent}</${tag}>`,
    ]
  }

  /** SCXML wants to be told where a history leads that has none. */
  function history(state: ChartState, indent: string): string[] {
    return [
      `${indent}<history${attributes({ id: nameOf(state.id), type: state.history ?? 'shallow' })}>`,
      `${indent}  ${element('transition', { target: state.initial.map(nameOf).join(' ') })}`,
      `${indent}</history>`,
    ]
  }

  function transition({ event, targets, when, actions, reenter }: ChartTransition): string[] {
    const given = attributes({
      ...(event !== '' && { event: eventName(event) }),
      ...(when !== null && when !== 'else' && { cond: when }),
      ...(targets.length > 0 && { target: targets.map(nameOf).join(' ') }),
      ...(targets.length > 0 && !reenter && { type: 'internal' }),
    })
    if (actions.length === 0) return [`<transition${given}/>`]
    return [`<transition${given}>`, ...actions.map((name) => `  ${action(name)}`), '</transition>']
  }

  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<scxml${attributes({
      xmlns: 'http://www.w3.org/2005/07/scxml',
      'xmlns:statewright': 'https://www.npmjs.com/package/statewright',
      version: '1.0',
      name: xmlName(chart.id),
      initial: nameOf('(root)'),
    })}>`,
    ...write(chart.root, '  '),
    '</scxml>',
    '',
  ].join('\n')
}

function action(name: string): string {
  return element('statewright:action', { name })
}

function block(tag: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`<${tag}>`, ...lines.map((line) => `  ${line}`), `</${tag}>`]
}

/** The delay of `xstate.after.DELAY.ID`: milliseconds, or a name; null for other events. */
function delayOf(event: string): string | null {
  return /^xstate\.after\.([^.]+)\./.exec(event)?.[1] ?? null
}

function startTimer(event: string): string {
  const delay = delayOf(event) ?? ''
  return element('send', {
    event,
    id: event,
    ...(/^\d+$/.test(delay) ? { delay: `${delay}ms` } : { delayexpr: delay }),
  })
}

function eventName(event: string): string {
  return event
    .replace(/^xstate\.done\.actor\./, 'done.invoke.')
    .replace(/^xstate\.error\.actor\./, 'error.platform.')
    .replace(/^xstate\.done\.state\./, 'done.state.')
}

/** A name that XML allows for an id. */
function xmlName(id: string): string {
  const name = id.replaceAll(/[^\w.-]/g, '_')
  return /^[A-Za-z_]/.test(name) ? name : `_${name}`
}

function element(tag: string, given: Readonly<Record<string, string>>): string {
  return `<${tag}${attributes(given)}/>`
}

function attributes(given: Readonly<Record<string, string>>): string {
  return Object.entries(given)
    .map(([name, value]) => ` ${name}="${text(value)}"`)
    .join('')
}
