/**
 * Which agent began a run: kept in the log, so that another process can tell whether it may go on with it. A log of an
 * earlier Statewright has none.
 *
 * @example
 * const definition: AgentDefinition = { name: 'billing', version: '4', hash: '0f5c2a91d3b7e846' }
 */
export interface AgentDefinition {
  /** As `defineAgents` calls it. Absent: the agent was in no such list. */
  name?: string
  /** Its author's, if it has one. */
  version?: string
  /** Of its instructions, the names and schemas of its tools, and its model: 16 hexadecimal digits. */
  hash: string
}

/** What a log says of it; whatever else stands there says nothing. */
export function readDefinition(stored: unknown): AgentDefinition | null {
  const { name, version, hash } = (stored ?? {}) as Partial<Record<keyof AgentDefinition, unknown>>
  if (typeof hash !== 'string') return null
  return {
    ...(typeof name === 'string' && { name }),
    ...(typeof version === 'string' && { version }),
    hash,
  }
}
