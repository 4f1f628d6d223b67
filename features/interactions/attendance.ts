/** Whether somebody is there to answer, and for how long nobody has been. */

export interface AttendancePorts {
  /** A client is connected to the session. */
  readonly here: () => boolean
  /** ms */
  readonly now: () => number
  /** So long nobody may be there, ms. */
  readonly grace_ms: number
}

export class Attendance {
  readonly #ports: AttendancePorts
  #absentSince: number | undefined

  constructor(ports: AttendancePorts) {
    this.#ports = ports
  }

  /** Somebody looked, or came. */
  seen(): void {
    this.#absentSince = this.#ports.now()
  }

  /** ms until nobody has been there for too long; 0: so it is. */
  left(): number {
    const { here, now, grace_ms } = this.#ports
    if (here()) {
      this.#absentSince = now()
      return Math.max(1, grace_ms)
    }
    this.#absentSince ??= now()
    return Math.max(0, this.#absentSince + grace_ms - now())
  }
}
