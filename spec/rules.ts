/**
 * The rules of a session's log, a sentence each. A log that keeps them all can have come from the loop; one that breaks
 * a rule cannot. `judgeLog` applies them.
 */
export const rules = {
  sequence: 'Records are numbered one after the other.',
  opening: 'A log begins with the one record that opens it, or as a part of a log with a snapshot.',
  known: 'Every record, and every event, is of a kind that the loop has.',
  time: 'Within a run, time never runs backwards.',
  count: 'The number of the last event that was emitted never falls within a run.',
  start: 'A run starts where none is under way, with an id that no other has.',
  end: 'A run’s end is its last record: only a new run can follow.',
  request:
    'The model answers, or fails, only where a request is under way: after no limit, no pause and no stop.',
  screening: 'Shields speak only where they have been asked.',
  work: 'Memory, fitting, guards, back-offs and tools report only where they have been asked.',
  backOff: 'A failed request is made again only when its wait is over.',
  ids: 'The calls of an answer have ids of their own, and each says who has to act on it.',
  callStart: 'A call has a result, a cost or a question of its own only after it was started.',
  approval: 'A call that needs an approval or a client is not run before it has its answer.',
  loaded:
    'A call of a deferred tool that is not loaded does not run, and no other call has the result that loads a tool.',
  oneAnswer: 'A call has one result, and a question one answer.',
  question: 'An answer meets a question that is open, of the message that asked it.',
  control: 'A reply comes where the run waits for a message; a run is resumed that pauses.',
  deadline: 'A deadline passes once its time has come, and while the run’s clock runs.',
  resumed: 'Another process goes on with a run that is at work.',
  withheld: 'What no shield has cleared yet is marked as withheld.',
  usage: 'What is used is never less than nothing, so that totals never fall.',
  inbox: 'A message of the inbox is taken once, and so is one with a key.',
  place: 'A snapshot stands where its log leads to.',
  totals: 'The totals of a snapshot are the sum of what its log has spent.',
  counters: 'The counters of a snapshot are what its log has counted.',
  calls: 'The calls of a snapshot are those that its log has left.',
  transcript:
    'In a transcript, ids grow, and each call is followed by its one result, in the order of the calls.',
  facts: 'What a snapshot says of the session is what its log says.',
} as const

/** The name of a rule. */
export type Rule = keyof typeof rules

/** Thrown where a record breaks a rule; `message` says how. */
export class Broken extends Error {
  constructor(
    readonly rule: Rule,
    message: string,
  ) {
    super(message)
  }
}
