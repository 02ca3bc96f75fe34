import { scrubEvidence } from '../../../guards/lib/evidence.js'
import { redactAll } from './finder.js'
import { createSecretFinders, secretKinds } from './secrets.js'

const finders = createSecretFinders(secretKinds)

/**
 * A text as it may leave the process: without anything that `secretsShield` finds, and without what the evidence of guards
 * leaves out. What cannot be taken out piece by piece is left out as a whole.
 */
export function scrubSecrets(text: string): string {
  const { text: rest, clean } = redactAll(finders, scrubEvidence(text), () => redacted)
  return clean ? rest : redacted
}

const redacted = '[redacted]'
