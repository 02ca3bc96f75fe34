/** What a state means to a reader, told by its colour. */
export type Tone = 'success' | 'limit' | 'error' | 'neutral'

/** How a chart is emphasised. What a machine does not have is ignored. */
export interface Look {
  tones: Readonly<Record<string, Tone>>
  /**
   * The transitions that are drawn bold: from one state to another and, where several lead there, the event or guard
   * that is meant.
   */
  mainPath: readonly (readonly [from: string, to: string, by?: string])[]
}

/** The agent machine's: its finals, and a turn with one batch of tool calls that ends well. */
export const agentLook: Look = {
  tones: {
    COMPLETED: 'success',
    CANCELLED: 'neutral',
    TIMED_OUT: 'limit',
    MAX_STEPS: 'limit',
    BUDGET_EXCEEDED: 'limit',
    BLOCKED: 'error',
    ERROR: 'error',
  },
  mainPath: [
    ['RUNNING.starting', 'RUNNING.checkingLimits'],
    ['RUNNING.checkingLimits', 'RUNNING.requesting'],
    ['RUNNING.requesting', 'RUNNING.accounting'],
    ['RUNNING.accounting', 'RUNNING.checkingRepetition'],
    ['RUNNING.checkingRepetition', 'WAITING_FOR_TOOL.executing'],
    ['WAITING_FOR_TOOL.executing', 'WAITING_FOR_TOOL.observing'],
    ['WAITING_FOR_TOOL.observing', 'RUNNING.checkingLimits'],
    ['RUNNING.accounting', 'RUNNING.ending', 'else'],
    ['RUNNING.ending', 'COMPLETED'],
  ],
}

/** Whether a look draws the transition bold. */
export function isMain(
  { mainPath }: Look,
  {
    source,
    targets,
    on,
    when,
  }: { source: string; targets: readonly string[]; on: string; when: string | null },
): boolean {
  return mainPath.some(
    ([from, to, by]) =>
      from === source && targets.includes(to) && (by === undefined || by === on || by === when),
  )
}
