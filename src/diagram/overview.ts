import { bold, cell, colored, head, table, text } from './card.js'
import { type Chart, type ChartState, withNested } from './chart.js'
import { nodeNames } from './dot.js'
import { agentLook, isMain, type Look } from './look.js'
import { palette, toneColors } from './palette.js'

/** The top-level states in Graphviz's language: what each consists of, and what leads from one to another. */
export function toOverviewDot(chart: Chart, look: Look = agentLook): string {
  const tops = chart.root.states
  const nameOf = nodeNames(chart)
  const topOf = new Map(tops.flatMap((top) => withNested(top).map(({ id }) => [id, top.id])))
  const fromAnywhere = new Map(
    chart.root.transitions.flatMap(({ targets, on }) => targets.map((id) => [topOf.get(id), on])),
  )

  function node(top: ChartState): string {
    const tone = top.type === 'final' ? toneColors[look.tones[top.id] ?? 'neutral'] : undefined
    const nested = top.states.filter(({ type }) => type !== 'history').map(({ key }) => key)
    const always = fromAnywhere.get(top.id)
    const rows = [
      head(top, { width: 46 }),
      ...(nested.length === 0 ? [] : ['<hr/>']),
      ...inLines(nested, 46).map((line) => `<tr>${cell(text(line))}</tr>`),
      ...(always === undefined
        ? []
        : [`<tr>${cell(`${bold(text(always))} ${colored(palette.quiet, 'from anywhere')}`)}</tr>`]),
    ]
    const fill = tone?.fill ?? palette.areas[0]
    return `${nameOf(top.id)} [label=<${table({ border: 2, style: 'rounded', color: tone?.line ?? palette.line, bgcolor: fill }, rows.join(''))}>]`
  }

  function edges(top: ChartState): string[] {
    const ways = new Map<string, { labels: Set<string>; main: boolean }>()
    for (const state of withNested(top)) {
      for (const transition of state.transitions) {
        for (const target of transition.targets) {
          const to = topOf.get(target)
          if (to === undefined || to === top.id) continue
          const way = ways.get(to) ?? { labels: new Set(), main: false }
          way.main ||= isMain(look, transition)
          way.labels.add(/^(on(Done|Error)\b.*)?$/.test(transition.on) ? state.key : transition.on)
          ways.set(to, way)
        }
      }
    }
    return [...ways].map(([to, { labels, main }]) => {
      const color = main ? palette.main : palette.quiet
      const lines = inLines(labels.size > 5 ? [`${labels.size} of its states`] : [...labels], 24).map(
        (line) => `<tr>${cell(colored(color, text(line)))}</tr>`,
      )
      const style = main ? `color="${color}" penwidth=3.2 weight=4` : ''
      return `${nameOf(top.id)} -> ${nameOf(to)} [label=<${table({ border: 0 }, lines.join(''))}> ${style}]`
    })
  }

  return [
    'digraph {',
    'graph [rankdir=LR fontname="Helvetica" fontsize=15 nodesep=0.3 ranksep=0.6]',
    `graph [labelloc=t labeljust=l label=<${table({ border: 0 }, `${head(chart.root, { width: 100, size: 24 })}<tr><td height="8"></td></tr>`)}>]`,
    `node [shape=plain fontname="Helvetica" fontsize=15 fontcolor="${palette.text}"]`,
    `edge [fontname="Helvetica" fontsize=14 arrowsize=0.9 color="${palette.line}" penwidth=1.3]`,
    ...tops.map(node),
    ...tops.flatMap(edges),
    '}',
  ].join('\n')
}

/** The words with commas between, in lines of about this many characters. */
function inLines(words: readonly string[], width: number): string[] {
  const lines: string[] = []
  for (const [index, word] of words.entries()) {
    const piece = index < words.length - 1 ? `${word},` : word
    const last = lines.at(-1)
    if (last !== undefined && last.length + piece.length < width) lines[lines.length - 1] = `${last} ${piece}`
    else lines.push(piece)
  }
  return lines
}
