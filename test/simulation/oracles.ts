import { isSaid, type SharedStore } from './shared-store.js'

/** The final invariants. Each sentence is a broken promise. */
export function findLeftovers(shared: SharedStore): string[] {
  return [...findRepeated(shared), ...findLost(shared), ...findHeld(shared), ...findOrphans(shared)]
}

/** A message was applied or sent more than once. */
function findRepeated({ landed, views }: SharedStore): string[] {
  const broken: string[] = []
  for (const [session, view] of views) {
    for (const [message, times] of view.inbox)
      if (times > 1) broken.push(`Message ${message} of ${session} was applied ${times} times.`)
    for (const [id, times] of view.messageCounts)
      if (times > 1) broken.push(`${id} was said ${times} times in ${session}.`)
    for (const [text, times] of view.steered) {
      const left = landed.filter((one) => one.session === session && one.text.includes(`"${text}"`)).length
      if (text.startsWith('say-') && times > left)
        broken.push(`${session} was steered by ${text} ${times} times.`)
    }
  }
  return broken
}

/** A user message is neither in the log nor in the inbox. */
function findLost(shared: SharedStore): string[] {
  return shared.landed.flatMap(({ session, message, text }) =>
    !text.startsWith('{"type":"MESSAGE"') ||
    isSaid(shared.view(session), text) ||
    shared.unread(session).includes(message)
      ? []
      : [`Message ${message} of ${session} is lost: ${text.slice(0, 80)}`],
  )
}

/** A session has a lease owner but no pending work. */
function findHeld(shared: SharedStore): string[] {
  return [...shared.views.keys()].flatMap((session) => {
    const grant = shared.grantOf(session)
    return grant ? [`${grant.life} holds ${session} forever.`] : []
  })
}

/** States in which a run is not over. */
const unfinished: readonly unknown[] = ['RUNNING', 'WAITING_FOR_TOOL', 'WAITING_FOR_INPUT', 'PAUSED']

/** A sub-agent is still active although its parent run has ended. */
function findOrphans({ store }: SharedStore): string[] {
  const summaries = new Map(store.list({ children: true }).map(({ id, summary }) => [id, summary]))
  return [...summaries].flatMap(([id, child]) => {
    const above = summaries.get(child?.parent ?? '')
    return above && unfinished.includes(child?.state) && !unfinished.includes(above.state)
      ? [`${id} is ${child?.state} forever: ${child?.parent} has ended.`]
      : []
  })
}
