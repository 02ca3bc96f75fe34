// What is loaded when a reader turns to the playground, and not with the page: the loop, the checks of what is written, and what shows a run.
export { checkDraft, Play } from './play.ts'
export { readLog } from './read-log.ts'
export { scriptSchema, settingsSchema } from './schemas.ts'
export { Guards, Records, Transcript } from './transcript.tsx'
