import { expectArgument } from '../core/base/values.js'
import {
  type Chart,
  type ChartState,
  type ChartTransition,
  createUniqueNames,
  expectChart,
  flattenStates,
  getImplementationName,
  machineRule,
} from './chart.js'
import { agentLook, type Look, type Tone, palette, toneColors } from './look.js'
import { formatAttributes } from './svg-parts.js'
import type { AnyStateMachine } from 'xstate'
import { getGuardName } from '../core/chart/state-labels.js'

/**
 * Renders the machine as a Mermaid `stateDiagram-v2`, which GitHub and GitLab show in Markdown. Mermaid drops
 * edges at the border of a compound state. Transitions declared by a compound state therefore start at a "from
 * anywhere" state inside it, and transitions to a compound state end at its initial state. Transitions without a target
 * go into a note.
 *
 * @example await writeFile('machine.mmd', toMermaid(toChart(machine)))
 */
export function toMermaid(chart: Chart, look: Look = agentLook): string {
  expectChart('toMermaid', chart, 'look', look)
  const states = flattenStates(chart.root)
  // The prefix keeps names apart from Mermaid keywords.
  const getName = createUniqueNames(states, (id) => `s_${id.replaceAll(/\W/g, '_')}`)

  function declare(state: ChartState, indent: string): string[] {
    const name = getName(state.id)
    if (state.type === 'history') {
      const mark = state.history === 'deep' ? 'H*' : 'H'
      return [`${indent}state "${mark} ${escapeMermaid(state.key)}" as ${name}`]
    }
    const label = [state.key, ...state.invokes.map(({ src }) => `invoke ${src}`)]
      .map(escapeMermaid)
      .join('<br/>')
    const opening = `${indent}state "${label}" as ${name}`
    if (state.states.length === 0) return [opening]
    return [`${opening} {`, ...declareNested(state, `${indent}  `), `${indent}}`]
  }

  function declareNested(state: ChartState, indent: string): string[] {
    const own =
      state.states.length > 0 && state.transitions.length > 0
        ? [[`${indent}state "from anywhere${state === chart.root ? '' : ' in here'}" as ${getStart(state)}`]]
        : []
    const declared = [...own, ...state.states.map((child) => declare(child, indent))]
    if (state.type === 'parallel')
      return declared.flatMap((drawLines, i) => (i === 0 ? drawLines : [`${indent}--`, ...drawLines]))
    return [...state.initial.map((id) => `${indent}[*] --> ${getName(id)}`), ...declared.flat()]
  }

  function getStart(state: ChartState): string {
    return state.states.length > 0 ? `any_${getName(state.id)}` : getName(state.id)
  }

  function drawLines(state: ChartState): string[] {
    const written = new Map<string, string[]>()
    const inNote: string[] = []
    for (const transition of state.transitions) {
      const label = escapeMermaid(formatLabel(transition))
      for (const id of transition.targets.flatMap(findLandings))
        written.set(id, [...(written.get(id) ?? []), label])
      if (transition.targets.length === 0) inNote.push(`${label} → stays`)
    }
    return [
      ...[...written].map(
        ([id, labels]) => `  ${getStart(state)} --> ${getName(id)} : ${labels.join('<br/>')}`,
      ),
      ...formatNote(getStart(state), inNote),
    ]
  }

  function findLandings(id: string): string[] {
    const target = states.find((state) => state.id === id)
    return target && target.states.length > 0 ? target.initial.flatMap(findLandings) : [id]
  }

  return [
    'stateDiagram-v2',
    ...declareNested(chart.root, '  '),
    ...states.flatMap(drawLines),
    ...formatStyles(states, look, getName),
    '',
  ].join('\n')
}

function formatLabel({ on, when }: ChartTransition): string {
  const guard = when === null ? [] : [when === 'else' ? 'else' : `[${when}]`]
  return [...(on === '' ? [] : [on]), ...guard].join(' ') || 'always'
}

function formatStyles(states: readonly ChartState[], look: Look, getName: (id: string) => string): string[] {
  const finals = states.filter(({ type }) => type === 'final')
  const getTone = ({ id }: ChartState): Tone => look.tones[id] ?? 'neutral'
  const main = states.filter(
    ({ id, states: inner }) => inner.length === 0 && look.mainPath.some((path) => path.includes(id)),
  )
  const used = [...new Set(finals.map(getTone))]
  const listNames = (of: readonly ChartState[]): string => of.map(({ id }) => getName(id)).join(',')
  return [
    ...(main.length === 0
      ? []
      : [`  classDef main stroke:${palette.main},stroke-width:3px`, `  class ${listNames(main)} main`]),
    ...used.map((tone) => {
      const { fill, line } = toneColors[tone]
      return `  classDef ${tone} fill:${fill},stroke:${line},color:${palette.text}`
    }),
    ...used.map((tone) => `  class ${listNames(finals.filter((each) => getTone(each) === tone))} ${tone}`),
  ]
}

function formatNote(name: string, texts: readonly string[]): string[] {
  if (texts.length === 0) return []
  return [`  note left of ${name}`, ...texts.map((line) => `    ${line}`), '  end note']
}

function escapeMermaid(plain: string): string {
  return plain
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[#;:"<>{}%]/g, (character) => `#${character.codePointAt(0) ?? 32};`)
}

/**
 * Renders the machine as W3C SCXML. Guards become `cond`, actors `src`, and actions elements in a Statewright
 * namespace, all by name. `onDone` and `onError` become `done.invoke.ID` and `error.platform.ID`. The machine
 * itself is the outermost state because SCXML has no root transitions.
 *
 * @example await writeFile('machine.scxml', toScxml(toChart(machine)))
 */
export function toScxml(chart: Chart): string {
  expectChart('toScxml', chart)
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
      ...formatElements('onentry', [...state.entry.map(formatAction), ...timers.map(formatTimer)]),
      ...formatElements('onexit', [
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

  function writeHistory(state: ChartState, indent: string): string[] {
    return [
      `${indent}<history${formatAttributes({ id: getName(state.id), type: state.history ?? 'shallow' })}>`,
      `${indent}  ${formatElement('transition', { target: state.initial.map(getName).join(' ') })}`,
      `${indent}</history>`,
    ]
  }

  function writeTransition({ event, targets, when, actions, reenter }: ChartTransition): string[] {
    const attributes = formatAttributes({
      ...(event !== '' && { event: toScxmlEvent(event) }),
      ...(when !== null && when !== 'else' && { cond: when }),
      ...(targets.length > 0 && { target: targets.map(getName).join(' ') }),
      ...(targets.length > 0 && !reenter && { type: 'internal' }),
    })
    if (actions.length === 0) return [`<transition${attributes}/>`]
    return [`<transition${attributes}>`, ...actions.map((name) => `  ${formatAction(name)}`), '</transition>']
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

function formatElements(tag: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [`<${tag}>`, ...lines.map((line) => `  ${line}`), `</${tag}>`]
}

/** The delay in `xstate.after.DELAY.ID`, or null for other events. */
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

function toXmlName(id: string): string {
  const name = id.replaceAll(/[^\w.-]/g, '_')
  return /^[A-Za-z_]/.test(name) ? name : `_${name}`
}

function formatElement(tag: string, attributes: Readonly<Record<string, string>>): string {
  return `<${tag}${formatAttributes(attributes)}/>`
}

/**
 * The machine config as JSON, for Stately's editor and `createMachine`. Named functions are written as their
 * names, inline actions, guards and actors as `inline`. Other functions (initial context, input, output) are
 * omitted.
 *
 * @example await writeFile('machine.json', toMachineJson(machine))
 */
export function toMachineJson(machine: AnyStateMachine): string {
  expectArgument('toMachineJson(machine)', machine, machineRule)
  const config = toPlainJson(machine.config, '') as Record<string, unknown>
  return `${JSON.stringify({ ...config, id: machine.id }, null, 2)}\n`
}

/**
 * The machine config as a complete module for Stately's editors, which look for `createMachine`. The module runs, but
 * its actions, guards and actors have no implementations.
 *
 * @example await writeFile('machine.stately.js', toStately(machine))
 */
export function toStately(machine: AnyStateMachine): string {
  expectArgument('toStately(machine)', machine, machineRule)
  return `import { createMachine } from 'xstate'\n\nexport const machine = createMachine(${toMachineJson(machine).trimEnd()})\n`
}

const implementationNames: Readonly<Record<string, (implementation: unknown) => unknown>> = {
  guard: (guard) => ({ type: getGuardName(guard) }),
  actions: (action) => ({ type: getImplementationName(action) }),
  entry: (action) => ({ type: getImplementationName(action) }),
  exit: (action) => ({ type: getImplementationName(action) }),
  src: getImplementationName,
}

function toPlainJson(value: unknown, key: string): unknown {
  if (typeof value === 'function') return implementationNames[key]?.(value)
  if (Array.isArray(value)) return value.map((each) => toPlainJson(each, key))
  if (typeof value !== 'object' || value === null) return value
  if (key === 'src') return getImplementationName(value)
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, toPlainJson(each, name)]))
}
