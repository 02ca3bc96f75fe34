import { testUnheldQuestions } from '../support/expiring.js'
import { postgresPlace } from './place.js'

describe('while no process holds the session in Postgres', () => {
  testUnheldQuestions(postgresPlace)
})
