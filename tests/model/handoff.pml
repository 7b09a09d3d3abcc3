/* handoff.pml - the hand-off of a lock to its waiters, for the model checker spin.
 *
 * It follows core/src/acquire.c, acquire_waiting.c and release.c on the side of the clients,
 * and core/scripts/{acquire,release,extend}.lua with shared/grant.lua on the side of
 * the server. Three things are checked, see "what must hold": nobody believes in a
 * lock that another believes in, nothing of an op that is over stays on the server,
 * and (with -DLIVENESS) every waiter that lives comes to an end.
 *
 * Time is a number of ticks. Nothing stores a date; everything stores an age, and an
 * age stops growing where it stops to matter, so that time need not end. Between any
 * two steps of anybody any number of ticks may pass. So each reply and message can be
 * late, and each process frozen, for as long as it takes.
 *
 * Each op has a token of its own, a small number; 0 is "none".
 */

#ifndef N
#define N 3                  /* processes */
#endif
#ifndef ROUNDS
#define ROUNDS 1             /* ops of each, one after the other */
#endif
#ifndef TTL
#define TTL 2                /* ticks */
#endif
#ifndef CLAIM
#define CLAIM 1              /* the ttl for a waiter that may be frozen */
#endif
#ifndef CRASHES
#define CRASHES 1            /* how many processes may be killed, or stopped for good */
#endif
#ifndef LEAVES
#define LEAVES 255           /* how many ops may be cancelled, or run out of time */
#endif
#ifndef GRANTS
#define GRANTS 2             /* how many may be on their way to one client; with 1 a new
                                one makes that it never reads the one before */
#endif

/* The remedies; -D takes them out:
 *   FAULT_BELIEF    a grant is believed from the moment that it is read on
 *   FAULT_ENTRY     who wins by its timer leaves its entry in the queue
 *   FAULT_FORGET    after a grant or a win the time of the first queueing is forgotten
 *   FAULT_NO_TIMER  who waits in the queue never asks by itself
 */

#define TOKENS (N * ROUNDS)
#define DOUBT ((TTL + 1) / 2) /* a grant as old as that is confirmed first */

/* Ages of grants are counted from ZERO to AGE_MAX, that of the queueing to QUEUED_MAX.
 * Older than DOUBT need not be told apart, but for FAULT_FORGET: there a grant can look
 * younger than it is, even as if it came from the future. */
#ifdef FAULT_FORGET
#define QUEUED_MAX (2 * TTL)
#define ZERO QUEUED_MAX
#define counts_queued(p) true
#define AGE_MAX (ZERO + 3 * TTL)
#else
#define QUEUED_MAX DOUBT
#define ZERO 0
#define counts_queued(p) queued[p]
#define AGE_MAX DOUBT
#endif

/* Who queues again does so after a lease. If that is long enough for DOUBT, the age need
 * not be counted up to there. */
#if defined(FAULT_FORGET) || CLAIM < DOUBT
#define handled(x) skip
#else
#define handled(x) x = QUEUED_MAX
#endif

/* ------------------------------------------------------------------ the server */

byte key;                    /* the token that the lock's key holds */
byte lease;                  /* ticks until it expires */
byte queue[TOKENS];          /* tokens, first come first; the rest is 0 */

/* ----------------------------------------------------- what is under way to it */

mtype = {
    SET,                     /* SET NX PX */
    JOIN,                    /* acquire.lua with an entry, never queued before */
    ASK,                     /* the same from the queue */
    LOOK,                    /* acquire.lua without an entry, never queued before */
    QUIT,                    /* the same from the queue: takes the entry out */
    EXTEND,                  /* extend.lua */
    RELEASE,                 /* release.lua, by the holder */
    YES, NO                  /* the answers: it is ours, or was; it is not */
}

mtype request[TOKENS + 1];   /* of each op, one at a time */
bool cleanup[TOKENS + 1];    /* release.lua with the entry, sent behind the request */

/* ----------------------------------------------------------------- the clients */

#define IDLE 0
#define SETTING 1
#define ASKING 2
#define QUEUED 3
#define CONFIRMING 4
#define HELD 5
#define RELEASING 6
#define CRASHED 7

byte phase[N];
byte round[N];               /* ops that are over */
mtype reply[N];              /* under way to the client, 0: none */
byte age[N];                 /* while a request is under way: of that one.
                                HELD: of the lease, as the client counts it */
bool late[N];                /* no time is left to wait */
bool queued[N];              /* the client may be in the queue */
byte queued_age[N];          /* since before the request that queued it first */
byte grant_age[N];           /* of the newest grant that is unread: 0 for none, or 1 +
                                its age as the client would count it now */
bool stale[N];               /* an older one is unread, too */
byte crashes;
byte leaves;

/* A grant says how long after the queueing it was given. The client adds that to its own
 * time of before the queueing. So it overrates the age of the grant by what the queueing
 * request took to be handled: head_start. Both are counted up to DOUBT. */
byte head_start[TOKENS + 1];

/* To wait can only come to an end if the answers do not always take longer than a
 * lease. With -DLIVENESS they stop to, sometime; with -DPROMPT, too, they never do. */
#if defined(LIVENESS) && defined(PROMPT)
#define calm true
#elif defined(LIVENESS)
bool calm;                   /* all answer within a tick; nobody dies or leaves any more */
#else
#define calm false
#endif

#ifdef LIVENESS
bool rested[N];              /* when calm, who waits asks once in a tick at most */
#define may_ask(p) (!calm || rested[p])
#define rest(p, after) rested[p] = calm && after
#else
#define may_ask(p) true
#define rest(p, after) skip
#endif

#define token_of(p, r) ((p) * ROUNDS + (r) + 1)
#define token(p) token_of(p, round[p])
#define owner(t) (((t) - 1) / ROUNDS)
#define round_of(t) (((t) - 1) % ROUNDS)
#define dead(p) (phase[p] == CRASHED)
#define under_way(t) (request[t] || cleanup[t])
#define current(t) (!dead(owner(t)) && round[owner(t)] == round_of(t))
/* the op has ended, and the server has heard the last of it */
#define over(t) (!dead(owner(t)) && round[owner(t)] > round_of(t) && !under_way(t))
#define believes(p) (phase[p] == HELD && age[p] < TTL)

hidden byte i, j, found, sum, in_queue;

/* --------------------------------------------------------------- what must hold */

/* -DONLY_BELIEF, -DONLY_GONE or -DONLY_OTHERS looks for one kind of fault alone. */
#if defined(ONLY_GONE) || defined(ONLY_OTHERS)
#define must_believe(what) skip
#else
#define must_believe(what) assert(what)
#endif
#if defined(ONLY_BELIEF) || defined(ONLY_OTHERS)
#define must_be_gone(what) skip
#else
#define must_be_gone(what) assert(what)
#endif
#if defined(ONLY_BELIEF) || defined(ONLY_GONE)
#define must_be_another(what) skip
#else
#define must_be_another(what) assert(what)
#endif

/* Never two that believe in the lock. To be looked at whenever somebody starts to. */
inline check_belief()
{
    sum = 0;
    for (i : 0 .. N - 1) {
        sum = sum + believes(i)
    }
    must_believe(sum <= 1)
}

/* The lock is never given to an op that is over, so its token stays for a ttl at most. */
inline check_not_over(t)
{
    must_be_gone(!over(t))
}

/* Once the server has heard the last of an op, nothing of it is left there. */
inline check_gone(t)
{
    look_up(t);
    must_be_gone(key != t && !in_queue)
}

/* ------------------------------------------------------------- the server's scripts */

inline look_up(t)
{
    in_queue = false;
    for (i : 0 .. TOKENS - 1) {
        in_queue = in_queue || queue[i] == t
    }
}

inline take_out(t)
{
    j = 0;
    for (i : 0 .. TOKENS - 1) {
        if
        :: queue[i] != t -> queue[j] = queue[i]; j++
        :: else
        fi
    }
    for (i : j .. TOKENS - 1) {
        queue[i] = 0
    }
}

inline pop()
{
    for (i : 0 .. TOKENS - 2) {
        queue[i] = queue[i + 1]
    }
    queue[TOKENS - 1] = 0
}

inline set_key(t, ticks)
{
    check_not_over(t);
    key = t;
    lease = ticks;
    printf("    the lock is of op %d for %d\n", t, ticks)
}

/* A grant for a short while is confirmed like an old one, so the same stands for both.
 * When an earlier grant is still unread, the lease that it gave is over: all that is
 * kept of it is that it will be read first. */
inline publish(t, brief)
{
    printf("    tells op %d\n", t);
    if
    :: current(t) ->
        stale[owner(t)] = GRANTS > 1 && grant_age[owner(t)];
        grant_age[owner(t)] = 1 + (brief -> AGE_MAX : head_start[t]);
        head_start[t] = 0
    :: else
    fi
}

/* grant.lua: the entry `own` is passed over, or where `keep`, it is its turn. A process
 * that is killed has no subscriber, but the server may be slow to see it (`unseen`), and
 * one that is stopped has one. */
inline grant(own, keep, brief, unseen)
{
    found = 0;
    do
    :: queue[0] && !found ->
        if
#ifndef FAULT_ENTRY
        :: queue[0] == own && !keep
#endif
        :: queue[0] != own && dead(owner(queue[0])) && !unseen
        :: else -> found = queue[0]
        fi;
        pop()
    :: else -> break
    od;
    if
    :: found && !(keep && found == own) ->
        set_key(found, (brief -> CLAIM : TTL));
        publish(found, brief)
    :: else
    fi
}

inline answer(t, what)
{
    printf("    answers op %d: %e\n", t, what);
    if
    :: current(t) ->
        reply[owner(t)] = what;
        age[owner(t)] = (what == NO -> 0 : age[owner(t)]) /* a refusal does not age */
    :: else
    fi
}

/* acquire.lua */
inline do_acquire(t, brief, unseen)
{
    found = key;
    if
    :: !key && (queue[0] == 0 || queue[0] == t) -> found = t
    :: !key && queue[0] && queue[0] != t ->
        grant(t, true, brief, unseen);
        if
        :: !found -> found = t
        :: else
        fi
    :: else
    fi;
    if
    :: found == t -> set_key(t, TTL)
    :: else
    fi;
    if
    :: found == t || request[t] == LOOK || request[t] == QUIT ->
        if
#ifdef FAULT_ENTRY
        :: request[t] == QUIT && found != t -> take_out(t)
#else
        :: request[t] == ASK || request[t] == QUIT -> take_out(t)
#endif
        :: else
        fi
    :: else ->
        look_up(t);
        if
        :: !in_queue ->
            i = 0;
            do
            :: queue[i] -> i++
            :: else -> break
            od;
            queue[i] = t;
            if
            :: current(t) ->
                head_start[t] = (queued_age[owner(t)] < QUEUED_MAX ->
                                     ZERO + queued_age[owner(t)] : AGE_MAX);
                handled(queued_age[owner(t)])
            :: else
            fi
        :: else
        fi
    fi;
    answer(t, (found == t -> YES : NO))
}

/* release.lua */
inline do_release(t, brief, unseen)
{
    if
    :: key == t ->
        grant(t, false, brief, unseen);
        must_be_another(found != t); /* a release never gives the lock to itself */
        if
        :: !found -> printf("    the lock is free\n"); key = 0; lease = 0
        :: else
        fi
    :: else
    fi
}

#define asks(t) (request[t] == JOIN || request[t] == ASK || request[t] == LOOK || request[t] == QUIT)

inline serve(t, brief, unseen)
{
    printf("server handles %e of op %d (%d: a cleanup)\n", request[t], t, !request[t]);
    if
    :: request[t] == SET ->
        if
        :: !key -> set_key(t, TTL); answer(t, YES)
        :: else -> answer(t, NO)
        fi;
        request[t] = 0
    :: asks(t) ->
        do_acquire(t, brief, unseen);
        request[t] = 0
    :: request[t] == EXTEND ->
        if
        :: key == t -> set_key(t, TTL); answer(t, YES)
        :: else -> answer(t, NO)
        fi;
        request[t] = 0
    :: request[t] == RELEASE ->
        do_release(t, brief, unseen);
        answer(t, YES);
        request[t] = 0;
        check_gone(t)
    :: else /* a cleanup */ ->
        take_out(t);
        do_release(t, brief, unseen);
        cleanup[t] = false;
        check_gone(t)
    fi
}

#define can_grant(t) (queue[0] && request[t] != SET && request[t] != EXTEND)

/* One request is handled, in each way that what the model does not know can decide.
 * The server also handles what a process sent before it died, or never gets it. */
#define SERVE(t) \
    :: d_step { under_way(t) -> serve(t, false, false) } \
    :: d_step { under_way(t) && can_grant(t) -> serve(t, true, false) } \
    :: d_step { under_way(t) && can_grant(t) && crashes -> serve(t, false, true) } \
    :: d_step { under_way(t) && can_grant(t) && crashes -> serve(t, true, true) } \
    :: d_step { under_way(t) && dead(owner(t)) -> request[t] = 0; cleanup[t] = false }

proctype connection(byte p)
{
end:
    do
    SERVE(token_of(p, 0))
#if ROUNDS > 1
    SERVE(token_of(p, 1))
#endif
    od
}

/* ---------------------------------------------------------------- the client's op */

inline send(p, what, next)
{
    printf("op %d sends %e\n", token(p), what);
    request[token(p)] = what;
    phase[p] = next;
    age[p] = 0
}

/* Whatever came before does not matter any more to the client. */
inline clear(p)
{
    reply[p] = 0;
    age[p] = 0;
    late[p] = false;
    queued[p] = false;
    queued_age[p] = 0;
    grant_age[p] = 0;
    stale[p] = false;
    head_start[token(p)] = 0
}

inline end_op(p)
{
    clear(p);
    phase[p] = IDLE;
    round[p]++
}

/* Cancelled, or too slow: what is left at the server is cleaned up behind us. */
inline leave(p)
{
    printf("op %d leaves, and sends a cleanup\n", token(p));
    cleanup[token(p)] = true;
    end_op(p)
}

inline win(p, lease_age)
{
    found = lease_age;
    printf("op %d believes in the lock for %d\n", token(p), TTL - found);
    clear(p);
    phase[p] = HELD;
    age[p] = found;
    check_belief()
}

#ifdef FAULT_FORGET
inline look_younger(x, by)
{
    if
    :: x >= AGE_MAX /* more than we count: it stays so */
    :: x < AGE_MAX && x >= by -> x = x - by
    :: x < AGE_MAX && x < by -> x = 0
    fi
}

/* The first queueing was forgotten, but grants are still counted from it. Added to the
 * time of the new one, they look as much younger as it is later. */
inline queue_anew(p)
{
    look_younger(head_start[token(p)], queued_age[p]);
    if
    :: grant_age[p] ->
        grant_age[p]--;
        look_younger(grant_age[p], queued_age[p]);
        grant_age[p]++
    :: else
    fi;
    queued_age[p] = 0
}
#else
#define queue_anew(p) queued_age[p] = 0
#endif

inline ask_in_queue(p)
{
    send(p, (queued[p] -> ASK : JOIN), ASKING);
    if
    :: !queued[p] -> queue_anew(p); queued[p] = true
    :: else
    fi
}

inline count_leave()
{
#if LEAVES < 255
    leaves++
#else
    skip
#endif
}

inline ask_outside(p)
{
    late[p] = true;
    send(p, (queued[p] -> QUIT : LOOK), ASKING)
}

inline take_grant(p, grants_age)
{
#ifdef FAULT_FORGET
    queued[p] = false;
#endif
#ifdef FAULT_BELIEF
    win(p, 0)
#else
    if
    /* from before our queueing, if that can be: the clocks disagree */
    :: grants_age >= ZERO && grants_age < ZERO + DOUBT -> win(p, grants_age - ZERO)
    :: else -> send(p, EXTEND, CONFIRMING)
    fi
#endif
}

/* What comes next, when the lock is not ours. */
inline next(p)
{
    reply[p] = 0;
    if
    :: late[p] -> ask_outside(p)
    :: else -> ask_in_queue(p)
    fi
}

inline read_grant(p)
{
    printf("op %d reads a grant\n", token(p));
    if
    :: stale[p] -> stale[p] = false; take_grant(p, AGE_MAX)
    :: else -> sum = grant_age[p] - 1; grant_age[p] = 0; take_grant(p, sum)
    fi
}

/* `seen`: the newest grant was read before, while this answer was awaited. */
inline read_reply(p, seen)
{
    printf("op %d reads %e\n", token(p), reply[p]);
    if
    :: reply[p] == YES && age[p] < TTL -> win(p, age[p])
    :: reply[p] == YES && age[p] >= TTL && late[p] -> leave(p)
    :: reply[p] == YES && age[p] >= TTL && !late[p] ->
        if
        :: seen -> grant_age[p] = 0; stale[p] = false
        :: else
        fi;
#ifdef FAULT_FORGET
        queued[p] = false;
#endif
        next(p)
    :: reply[p] == NO && phase[p] != ASKING -> next(p)
    :: reply[p] == NO && phase[p] == ASKING && seen -> /* which came first on the server? */
        reply[p] = 0;
        stale[p] = false;
        grant_age[p] = 0;
        take_grant(p, AGE_MAX)
    :: reply[p] == NO && phase[p] == ASKING && !seen && !late[p] ->
        reply[p] = 0;
        phase[p] = QUEUED
    :: reply[p] == NO && phase[p] == ASKING && !seen && late[p] ->
        check_gone(token(p));
        end_op(p)
    fi
}

#define waits(p) (phase[p] >= SETTING && phase[p] <= CONFIRMING)
/* They are alike, so they may as well be numbered as they begin. */
#define begins(p) (phase[p] == IDLE && round[p] < ROUNDS && \
                   (p == 0 || phase[p - 1] != IDLE || round[p - 1]))

proctype client(byte p)
{
end:
    do
    /* a lock that was busy of late is not tried by SET */
    :: d_step { begins(p) -> send(p, SET, SETTING) }
    :: d_step { begins(p) -> ask_in_queue(p) }

    :: d_step { reply[p] && waits(p) -> read_reply(p, false) }
    :: d_step { reply[p] == NO && phase[p] != ASKING && waits(p) && !late[p] && leaves < LEAVES ->
            count_leave(); reply[p] = 0; ask_outside(p) }
    :: d_step { reply[p] && queued[p] && grant_age[p] && phase[p] != CONFIRMING ->
            read_reply(p, true) }
    :: d_step { reply[p] && phase[p] == RELEASING -> end_op(p) }
    :: d_step { phase[p] == QUEUED && grant_age[p] -> read_grant(p) }

#ifndef FAULT_NO_TIMER
    :: d_step { phase[p] == QUEUED && may_ask(p) -> rest(p, false); ask_in_queue(p) }
#endif
    :: d_step { phase[p] == HELD -> clear(p); send(p, RELEASE, RELEASING) }
    od
}

/* Whatever ends an op otherwise. */
#define DISTURB(p) \
    :: d_step { phase[p] == QUEUED && leaves < LEAVES -> count_leave(); ask_outside(p) } \
    :: d_step { waits(p) && leaves < LEAVES -> count_leave(); leave(p) } \
    :: d_step { (waits(p) || phase[p] >= HELD && phase[p] < CRASHED) && crashes < CRASHES -> \
            printf("op %d dies\n", token(p)); clear(p); phase[p] = CRASHED; crashes++ }

proctype world()
{
end:
    do
    DISTURB(0)
    DISTURB(1)
#if N > 2
    DISTURB(2)
#endif
#if defined(LIVENESS) && defined(PROMPT)
    :: break
#elif defined(LIVENESS)
    :: calm = true; break
#endif
    od
}

/* --------------------------------------------------------------------- the time */

#define ended(p) (dead(p) || round[p] == ROUNDS)
#if N > 2
#define each(what) (what(0) && what(1) && what(2))
#else
#define each(what) (what(0) && what(1))
#endif

/* nothing of p's is on its way, or unread */
#if ROUNDS > 1
#define sent_nothing(p) (!under_way(token_of(p, 0)) && !under_way(token_of(p, 1)))
#else
#define sent_nothing(p) (!under_way(token_of(p, 0)))
#endif
#define quiet(p) (sent_nothing(p) && !reply[p] && !(grant_age[p] && phase[p] == QUEUED))

inline older(x, most)
{
    x = (x < most -> x + 1 : x)
}

/* The lease of a client is over by the time that the server's key is. */
inline tick()
{
    printf("-- tick\n");
    for (i : 0 .. N - 1) {
        rest(i, phase[i] == QUEUED);
        if
        :: waits(i) && (request[token(i)] || reply[i] == YES) || phase[i] == HELD ->
            older(age[i], TTL)
        :: else
        fi;
        if
        :: waits(i) && counts_queued(i) -> older(queued_age[i], QUEUED_MAX)
        :: else
        fi;
        if
        :: grant_age[i] -> older(grant_age[i], 1 + AGE_MAX)
        :: else
        fi
    }
    if
    :: lease > 0 ->
        lease--;
        if
        :: lease == 0 -> printf("    the lock expires\n"); key = 0
        :: else
        fi
    :: else
    fi
}

proctype clock()
{
end:
    do
    :: d_step { !each(ended) && (!calm || each(quiet)) -> tick() }
    od
}

init
{
    atomic {
        for (i : 0 .. N - 1) {
            run client(i);
            run connection(i)
        }
        run world();
        run clock()
    }
}

#ifdef LIVENESS
/* Time goes on only until all is over, so whoever is not over by then never will. */
ltl no_lost_waiter { <> each(ended) }
#endif
