// Loaded when a reader first uses the playground, separately from the page. Contains the loop, the checks of drafts, and the views of a run.
export { checkDraft, Play } from './play.ts'
export { readLog } from './read-log.ts'
export { scriptSchema, settingsSchema } from './schemas.ts'
export { Guards, Records, Transcript } from './transcript.tsx'
export { writeProgram } from './typescript.ts'
