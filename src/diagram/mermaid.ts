import { anyOptions, expectArgument, objectWith } from '../core/base/expect-argument.js'
import { type Chart, type ChartState, type ChartTransition, uniqueNames, withNested } from './chart.js'
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
  expectArgument('toMermaid(chart)', chart, objectWith(['root'], 'a chart: what toChart(machine) returned'))
  expectArgument('toMermaid(chart, look)', look, anyOptions)
  const states = withNested(chart.root)
  // Mermaid's names are words; the prefix keeps them apart from its own.
  const nameOf = uniqueNames(states, (id) => `s_${id.replaceAll(/\W/g, '_')}`)

  function declare(state: ChartState, indent: string): string[] {
    const name = nameOf(state.id)
    if (state.type === 'history') {
      const mark = state.history === 'deep' ? 'H*' : 'H'
      return [`${indent}state "${mark} ${escape(state.key)}" as ${name}`]
    }
    const label = [state.key, ...state.invokes.map(({ src }) => `invoke ${src}`)].map(escape).join('<br/>')
    const opening = `${indent}state "${label}" as ${name}`
    if (state.states.length === 0) return [opening]
    return [`${opening} {`, ...nested(state, `${indent}  `), `${indent}}`]
  }

  function nested(state: ChartState, indent: string): string[] {
    const own =
      state.states.length > 0 && state.transitions.length > 0
        ? [[`${indent}state "from anywhere${state === chart.root ? '' : ' in here'}" as ${startOf(state)}`]]
        : []
    const declared = [...own, ...state.states.map((child) => declare(child, indent))]
    if (state.type === 'parallel')
      return declared.flatMap((lines, i) => (i === 0 ? lines : [`${indent}--`, ...lines]))
    return [...state.initial.map((id) => `${indent}[*] --> ${nameOf(id)}`), ...declared.flat()]
  }

  /** Where the lines of a state's own transitions begin. */
  function startOf(state: ChartState): string {
    return state.states.length > 0 ? `any_${nameOf(state.id)}` : nameOf(state.id)
  }

  function lines(state: ChartState): string[] {
    const written = new Map<string, string[]>()
    const inNote: string[] = []
    for (const transition of state.transitions) {
      const label = escape(labelOf(transition))
      for (const id of transition.targets.flatMap(landings))
        written.set(id, [...(written.get(id) ?? []), label])
      if (transition.targets.length === 0) inNote.push(`${label} → stays`)
    }
    return [
      ...[...written].map(([id, labels]) => arrow(startOf(state), nameOf(id), labels)),
      ...note(startOf(state), inNote),
    ]
  }

  /** Where an arrow ends: for a state with others in it, at what is entered first. */
  function landings(id: string): string[] {
    const target = states.find((state) => state.id === id)
    return target && target.states.length > 0 ? target.initial.flatMap(landings) : [id]
  }

  return [
    'stateDiagram-v2',
    ...nested(chart.root, '  '),
    ...states.flatMap(lines),
    ...styles(states, look, nameOf),
    '',
  ].join('\n')
}

function labelOf({ on, when }: ChartTransition): string {
  const guard = when === null ? [] : [when === 'else' ? 'else' : `[${when}]`]
  return [...(on === '' ? [] : [on]), ...guard].join(' ') || 'always'
}

function arrow(from: string, to: string, labels: readonly string[]): string {
  return `  ${from} --> ${to} : ${labels.join('<br/>')}`
}

function styles(states: readonly ChartState[], look: Look, nameOf: (id: string) => string): string[] {
  const finals = states.filter(({ type }) => type === 'final')
  const toneOf = ({ id }: ChartState): Tone => look.tones[id] ?? 'neutral'
  const main = states.filter(
    ({ id, states: inner }) => inner.length === 0 && look.mainPath.some((path) => path.includes(id)),
  )
  const used = [...new Set(finals.map(toneOf))]
  return [
    ...(main.length === 0
      ? []
      : [
          `  classDef main stroke:${palette.main},stroke-width:3px`,
          `  class ${main.map(({ id }) => nameOf(id)).join(',')} main`,
        ]),
    ...used.map(
      (tone) =>
        `  classDef ${tone} fill:${toneColors[tone].fill},stroke:${toneColors[tone].line},color:${palette.text}`,
    ),
    ...used.map(
      (tone) =>
        `  class ${finals
          .filter((each) => toneOf(each) === tone)
          .map(({ id }) => nameOf(id))
          .join(',')} ${tone}`,
    ),
  ]
}

function note(name: string, texts: readonly string[]): string[] {
  if (texts.length === 0) return []
  return [`  note left of ${name}`, ...texts.map((line) => `    ${line}`), '  end note']
}

/** What Mermaid would read as its own syntax, as its entities. */
function escape(plain: string): string {
  return plain
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[#;:"<>{}%]/g, (character) => `#${character.codePointAt(0) ?? 32};`)
}
