import { testUnheldQuestions } from '../support/expiring.js'
import { testSharedGrants } from '../support/granting.js'
import { postgresPlace } from './place.js'

describe('while no process holds the session in Postgres', () => {
  testUnheldQuestions(postgresPlace)
})

describe('grants in Postgres', () => {
  testSharedGrants(postgresPlace)
})
