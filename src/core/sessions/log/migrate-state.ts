/** Where the states of RUNNING are. Until version 2 of the log they stood beside each other. */
const regionByState: Readonly<Record<string, string>> = {
  screeningInput: 'preparing',
  retrieving: 'preparing',
  fittingContext: 'preparing',
  requesting: 'asking',
  backingOff: 'asking',
  concluding: 'asking',
  screeningOutput: 'asking',
  consultingOnCalls: 'judging',
}

/**
 * A stored state of the machine where this machine has it, by any version that stored it. Its history is left out: a restored run
 * goes on from where it stands, and what earlier versions wrote there names states as they were.
 */
export function migrateState<State extends object>(stored: State): State {
  const { value } = stored as { value?: { RUNNING?: unknown } }
  const inside = value?.RUNNING
  const region =
    typeof inside === 'string' && Object.hasOwn(regionByState, inside) ? regionByState[inside] : undefined
  const moved = region === undefined ? {} : { value: { RUNNING: { [region]: inside } } }
  return { ...stored, ...moved, historyValue: {} }
}
