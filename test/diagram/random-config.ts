import * as fc from 'fast-check'

interface Node {
  key: string
  type: 'atomic' | 'compound' | 'parallel' | 'final' | 'shallow' | 'deep'
  children: Node[]
}

const kinds = ['atomic', 'compound', 'parallel', 'final', 'shallow', 'deep'] as const

/** A tree of states with all XState kinds: nested, parallel, history and final. */
function tree(depth: number): fc.Arbitrary<Node[]> {
  const children = depth === 0 ? fc.constant<Node[]>([]) : tree(depth - 1)
  const node = fc.record({ type: fc.constantFrom(...kinds), children })
  return fc.array(node, { minLength: 1, maxLength: 3 }).map((nodes) =>
    nodes.map(({ type, children: inner }, index): Node => {
      const hasChildren = (type === 'compound' || type === 'parallel') && inner.length > 0
      const isPlain = type === 'compound' || type === 'parallel' || index === 0
      return {
        // Awkward on purpose: spaces, punctuation and reserved words of the formats.
        key: ['end', 'a state', 'x:<"&>'][index] ?? 's',
        type: hasChildren ? type : isPlain ? 'atomic' : type,
        children: hasChildren ? inner : [],
      }
    }),
  )
}

/** A machine with random transitions between its states, for every kind of event. */
export const randomConfig: fc.Arbitrary<object> = fc
  .record({ states: tree(2), picks: fc.infiniteStream(fc.nat({ max: 999 })) })
  .map(({ states, picks }) => {
    const pick = (below: number): number => (picks.next().value ?? 0) % below
    const paths: string[] = []
    const collect = (nodes: readonly Node[], above: string): void => {
      for (const { key, children } of nodes) {
        paths.push(above + key)
        collect(children, `${above}${key}.`)
      }
    }
    collect(states, '')
    const branch = (): object => ({
      ...(pick(3) > 0 && { target: `#m.${paths[pick(paths.length)] ?? ''}`, reenter: pick(2) === 0 }),
      ...(pick(2) === 0 && { guard: { type: 'is "so" & <so>', params: { n: pick(3) } } }),
      ...(pick(2) === 0 && { actions: 'act' }),
    })
    const branches = (): object[] => Array.from({ length: 1 + pick(2) }, branch)
    const own = (): object => ({
      ...(pick(2) === 0 && { on: { GO: branches(), 'go.*': branches() } }),
      ...(pick(4) === 0 && { on: { '*': branches() } }),
      ...(pick(4) === 0 && { after: { 100: branches(), soon: branches() } }),
      ...(pick(4) === 0 && { always: { ...branch(), guard: 'ready' } }),
      ...(pick(4) === 0 && { invoke: { id: 'it', src: 'work', onDone: branches(), onError: branches() } }),
    })
    const config = ({ type, children }: Node): object => {
      if (type === 'final') return { type, output: { n: 1 } }
      if (type === 'shallow' || type === 'deep') return { type: 'history', history: type }
      if (type === 'atomic') return own()
      return {
        ...own(),
        ...(type === 'parallel' ? { type } : { initial: children[0]?.key }),
        ...(pick(3) === 0 && { onDone: branches() }),
        states: statesOf(children),
      }
    }
    const statesOf = (nodes: readonly Node[]): Record<string, object> =>
      Object.fromEntries(nodes.map((node) => [node.key, config(node)]))
    return {
      id: 'm',
      ...own(),
      initial: states[0]?.key ?? '',
      states: statesOf(states),
    }
  })
