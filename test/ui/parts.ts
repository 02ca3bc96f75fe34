/** Parts of a message as both the stream and the log show them. */
export function partsOf(message: { parts: readonly object[] } | undefined): object[] {
  return (message?.parts ?? []).filter(isInBoth).map((part) => {
    const { state, approval: _, providerMetadata: _p, rawInput, ...rest } = part as Record<string, unknown>
    const isText = rest['type'] === 'text' || rest['type'] === 'reasoning'
    // Edited arguments that a shield refused are withheld in the log; the page has the original ones.
    const isRefused = String(rest['errorText']).startsWith('The user changed the arguments before')
    const input = isRefused ? undefined : (rawInput ?? rest['input'])
    const known = isText ? { ...rest, id: undefined } : { ...rest, state, input }
    return JSON.parse(JSON.stringify(known)) as object
  })
}

/**
 * Leaves out parts that the transcript lacks: sub-agent activity, guard messages, memory sources, steps of failed attempts, and
 * text that no shield had cleared when the run stopped.
 */
function isInBoth(part: object): boolean {
  const { type, state, sourceId = '' } = part as { type: string; state?: string; sourceId?: string }
  if (/^(data-(child|statewright)|step-start)/.test(type) || sourceId.includes('.found.')) return false
  if (type === 'dynamic-tool') return state === 'approval-requested'
  return !/Withheld: no shield has cleared/.test(JSON.stringify(part))
}
