import { type Chart, type ChartState, type ChartTransition, uniqueNames, withNested } from './chart.js'
import { agentLook, type Look, type Tone } from './look.js'
import { palette, toneColors } from './palette.js'

/**
 * The machine as a Mermaid `stateDiagram-v2`, which GitHub and GitLab show in Markdown. A compound state's
 * own transitions, and those without a target, are written into a note: Mermaid draws no line from a compound state's
 * border, nor into a state from within.
 */
export function toMermaid(chart: Chart, look: Look = agentLook): string {
  const states = withNested(chart.root)
  // Mermaid's names are words; the prefix keeps them apart from its own.
  const nameOf = uniqueNames(states, (id) => `s_${id.replaceAll(/\W/g, '_')}`)

  function declare(state: ChartState, indent: string): string[] {
    const name = nameOf(state.id)
    if (state.type === 'history') return [`${indent}state "H ${escape(state.key)}" as ${name}`]
    const label = [state.key, ...state.invokes.map(({ src }) => `invoke ${src}`)].map(escape).join('<br/>')
    const opening = `${indent}state "${label}" as ${name}`
    if (state.states.length === 0) return [opening]
    return [`${opening} {`, ...nested(state, `${indent}  `), `${indent}}`]
  }

  function nested(state: ChartState, indent: string): string[] {
    const declared = state.states.map((child) => declare(child, indent))
    if (state.type === 'parallel')
      return declared.flatMap((lines, i) => (i === 0 ? lines : [`${indent}--`, ...lines]))
    return [...state.initial.map((id) => `${indent}[*] --> ${nameOf(id)}`), ...declared.flat()]
  }

  function lines(state: ChartState): string[] {
    const written = new Map<string, string[]>()
    const inNote: string[] = []
    for (const transition of state.transitions) {
      const { targets } = transition
      const drawn = state.states.length > 0 ? [] : targets.map(landing)
      for (const id of drawn) written.set(id, [...(written.get(id) ?? []), escape(labelOf(transition))])
      if (drawn.length === 0) inNote.push(escape(`${labelOf(transition)} → ${targets.join(', ') || 'stays'}`))
    }
    return [
      ...[...written].map(([id, labels]) => arrow(nameOf(state.id), nameOf(id), labels)),
      ...note(state, inNote),
    ]
  }

  /** Where an arrow ends: for a compound state, at what is entered first in it. */
  function landing(id: string): string {
    const [initial] = states.find((state) => state.id === id)?.initial ?? []
    return initial === undefined ? id : landing(initial)
  }

  /** The root's own are noted at its first state: they hold wherever the run is. */
  function note(state: ChartState, texts: readonly string[]): string[] {
    const isRoot = state === chart.root
    const anchor = isRoot ? chart.root.states[0] : state
    if (texts.length === 0 || !anchor) return []
    const heading = isRoot ? ['from anywhere:'] : []
    return [
      `  note left of ${nameOf(anchor.id)}`,
      ...[...heading, ...texts].map((line) => `    ${line}`),
      '  end note',
    ]
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

/** What Mermaid would read as its own syntax, as its entities. */
function escape(plain: string): string {
  return plain
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[#;:"<>{}%]/g, (character) => `#${character.codePointAt(0) ?? 32};`)
}
