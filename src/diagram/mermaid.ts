import { optionsRule, expectArgument, objectRule } from '../core/base/expect-argument.js'
import {
  type Chart,
  type ChartState,
  type ChartTransition,
  createUniqueNames,
  flattenStates,
} from './chart.js'
import { agentLook, type Look, type Tone } from './look.js'
import { palette, toneColors } from './theme.js'

/**
 * The machine as a Mermaid `stateDiagram-v2`, which GitHub and GitLab show in Markdown. Mermaid loses lines that begin or
 * end at the border of a state with others in it. So what such a state declares itself, or the machine, begins at a
 * state "from anywhere" inside, and what leads to it ends at what is entered first. Transitions without a target are
 * written into a note.
 *
 * @example await writeFile('machine.mmd', toMermaid(toChart(machine)))
 */
export function toMermaid(chart: Chart, look: Look = agentLook): string {
  expectArgument('toMermaid(chart)', chart, objectRule(['root'], 'a chart: what toChart(machine) returned'))
  expectArgument('toMermaid(chart, look)', look, optionsRule)
  const states = flattenStates(chart.root)
  // Mermaid's names are words; the prefix keeps them apart from its own.
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

  /** Where the lines of a state's own transitions begin. */
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
      ...[...written].map(([id, labels]) => formatArrow(getStart(state), getName(id), labels)),
      ...formatNote(getStart(state), inNote),
    ]
  }

  /** Where an arrow ends: for a state with others in it, at what is entered first. */
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

function formatArrow(from: string, to: string, labels: readonly string[]): string {
  return `  ${from} --> ${to} : ${labels.join('<br/>')}`
}

function formatStyles(states: readonly ChartState[], look: Look, getName: (id: string) => string): string[] {
  const finals = states.filter(({ type }) => type === 'final')
  const getTone = ({ id }: ChartState): Tone => look.tones[id] ?? 'neutral'
  const main = states.filter(
    ({ id, states: inner }) => inner.length === 0 && look.mainPath.some((path) => path.includes(id)),
  )
  const used = [...new Set(finals.map(getTone))]
  return [
    ...(main.length === 0
      ? []
      : [
          `  classDef main stroke:${palette.main},stroke-width:3px`,
          `  class ${main.map(({ id }) => getName(id)).join(',')} main`,
        ]),
    ...used.map(
      (tone) =>
        `  classDef ${tone} fill:${toneColors[tone].fill},stroke:${toneColors[tone].line},color:${palette.text}`,
    ),
    ...used.map(
      (tone) =>
        `  class ${finals
          .filter((each) => getTone(each) === tone)
          .map(({ id }) => getName(id))
          .join(',')} ${tone}`,
    ),
  ]
}

function formatNote(name: string, texts: readonly string[]): string[] {
  if (texts.length === 0) return []
  return [`  note left of ${name}`, ...texts.map((line) => `    ${line}`), '  end note']
}

/** What Mermaid would read as its own syntax, as its entities. */
function escapeMermaid(plain: string): string {
  return plain
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[#;:"<>{}%]/g, (character) => `#${character.codePointAt(0) ?? 32};`)
}
