"""The words of each role in a notice of failure; a star stands for any ending. Roles are explained in `roles`."""

from answerkey.detect.learned.roles import (
    ABLE,
    ADVICE,
    APOLOGY,
    ARTICLE,
    ASK,
    ASKERS,
    BAD,
    BARE_NOT,
    BE,
    BECAUSE,
    BEFORE,
    BUT,
    CONDITION,
    DELIVER,
    DISTANT,
    DOES,
    DONE,
    ENOUGH,
    EXPLAIN,
    FAIL,
    FOR,
    FOREIGN,
    FUNCTION,
    GENERAL,
    HAPPEN,
    HELP,
    HOLD,
    JOINT,
    KEPT,
    LIMIT,
    MACHINE,
    MATCHES,
    MEET,
    MENDED,
    NEGATION,
    NOW,
    OPERATION,
    OTHERS,
    POLICY,
    POLITE,
    PRONOUN,
    RESULT,
    RETRY,
    SELF,
    SLOW,
    SOFT,
    SPENT,
    TAKE,
    THING,
    TO,
    TRIED,
    TROUBLE,
    UNIT,
    USER,
    VERBAL,
    YOU,
)

__all__ = ["WORDS"]

# Broad on purpose, and in four languages where the words are the same parts of a notice.
WORDS: dict[int, str] = {
    SELF: """
        i i'd i'll i'm i've ich im j'ai je me mein* mes mi mine mir my myself nos notre nous nuestr* our ours ourselves uns
        unser* us we we'd we'll we're we've wir yo
    """,
    USER: """
        dein* ihnen ihr ihre ihren ihrer sie su sus tu tus usted vos votre vous you your yours
    """,
    NEGATION: """
        0 ain't aren't aucun aucune barely can't cannot cant couldn't couldnt didn't didnt doesn't doesnt don't empty-handed
        hadn't hardly hasn't haven't incapable isn't isnt kein keine keinem keinen keiner n'a n'ai n'arrive n'avons n'est
        n'ont n't nada nah ne neither never nicht nil ning* no nobody none nope nor not nothing nowhere pas rien shouldn't
        sin unable unsuccessful* wasn't wasnt weren't without won't wont wouldn't zero
    """,
    ABLE: """
        able arrive* can can't cannot cant capable could couldn't couldnt imposible impossible incapable kann konnte
        konnten können könnte manage* mesure möglich parvenons parvien* peut peux podemos podido podré posible
        possible pouvons pu pude pudo puede puedo unable unmöglich won't wont wouldn't wouldnt
    """,
    OPERATION: """
        abgerufen abrir abrufen acceder access* accéder allocat* answer* anzeigen apply* applying ausführen
        authenticat* beantworten book* boot* bring* build* calculat* call* cargar carry charger check* communicat*
        compare* compile* complet* completar comput* conectar* confirm* connect* connecter consultar consulter
        contact* continu* convert* count* create creating decod* decrypt* deliver* determine display* download*
        durchführen ejecutar embed* erreichen establish* execut* export* extract* exécuter fetch* fill* finali*
        finden finish* fulfil* generat* get getting hand* handl* herstellen import* index* initiali* interpret*
        invoke* joindre laden launch* leer lesen lire list* load* log login look* look-up lookup nennen obtener
        obtenir open* ouvrir pars* perform* place* proceed* procesar process* produc* pull* quer* quot* reach* read*
        reconnect* recuperar render* repli* reply* report* resolv* respond* responder retriev* return* run running
        récupérer répond* répondre save saving scan* search* send sending serv* spin start* stream* submit* suchen
        sum summari* summaris* talk* tally terminer total traiter transcrib* translat* update* updating upload* use
        using verarbeite* verbinden verify* write writing zugreifen öffnen
    """,
    DONE: """
        accepted accessible allowed answered answering antwortet applied attempted ausgeführt authenticated
        authorised authorized available beantwortet booked built calculated cargad* completad* completed computed
        configured connected created decrypted delivered displayed disponible disponibles done downloaded ejecutad*
        erreichbar established executed exported fetched finished found fulfilled functioning geladen generated
        given handled healthy imported initialised initialized installed loaded loading made mounted obtained online
        opened operational parsed performed posted procesad* processed produced pulled queried reachable reached
        read ready received recognised recognized recorded registered rendered resolved responding retrieved
        returned run running saved scheduled searched sent served shown started stored submitted through traité
        traitée transcribed up updated uploaded verarbeitet verfügbar work worked working written
    """,
    RESULT: """
        acknowledgement acknowledgment answer answers antwort breakdown completion confirmation content contents details
        dice ergebnis ergebnisse figure figures hit hits joy list listing luck number outcome output outputs reading readout
        replies reply report response responses respuesta result resultado resultados results réponse résultat summary
    """,
    MACHINE: """
        ai anthropic api apis assistant assistants azure back-end backend backends base bedrock bot bot's broker
        bucket cache calculator calendar cert certificate chatbot claude cluster compiler computer computers
        connector connectors container containers converter cpu crawler credential credentials crm cuda daemon
        database databases datastore datenbank datenbanken datenbankverbindung datos db dbs dienst dienste disk dns
        downstream driver elasticsearch embedder embedding embeddings endpoint endpoints extractor firewall
        function-call gateway gateways gemini generator gpt gpu graphql grpc herramienta host hostname hosts http
        https indexer integration interface interpreter json kafka kernel knowledge-base lambda library llm loader
        lookup lookups mcp microphone microservice middleware modell modelo modèle mongo mongodb mount mysql
        namespace node nodes oauth ocr openai opensearch orchestrator outil outils parser pinecone pipeline planner
        plug-in plugin plugins pod pods pooler postgres postgresql provider proxy queries query queue rabbitmq
        reader redis renderer replica retriever retrievers router rpc runtime s3 sandbox scheduler schnittstelle
        scraper sdk search-engine search_index serializer server serverfehler serverless servers serveur serveurs
        servidor servidores shard shards socket software sql sqlite ssl stacktrace subprocess subquery summariser
        summarizer tcp thread timeout tls tokenizer tool tool-call tools tunnel upstream uri url validator vector
        vectorstore vertex vpn warehouse webhook websocket werkzeug worker workers xml
    """,
    THING: """
        abfrage action anfrage app application attempt attempts audio authentication authorization backup bandwidth
        books búsqueda calculator call calls capacity carpeta catalog catalogue chain channel chat code component
        computadora conexión config configuration connection connections connexion consulta context conversation
        data demand demande dependencies dependency device download drive end engine enquiry everything export
        feature feed fetch file files function generation generic grant handler handshake hardware import index
        inference input inquiry integration internal internet job jobs key limit limits link load logic logiciel
        login lookup loop maintenance memory message model models module network netzwerk operation ordinateur pdf
        permission permissions petición plan platform portal process program programa programm programme programs
        prompt question quota rate reasoning recherche rechner recognition records red rendering request requests
        requête resolver responder retrieval role run runs runtime screen script search searches server-side service
        services servicio sesión session sessions side sistema site sitzung snapshot solicitud something source
        sources speech spreadsheet stack step steps storage store stream suche sync system systeme systems système
        table tables task tasks technical template temporary thing things token tokens traffic transcription
        unspecified upload verbindung voice volume website wifi workflow
    """,
    FAIL: """
        4xx 5xx abgebrochen abgestürzt abort* agotado ausgefallen bail* barfed blew borked brach bust busted cayeron cayó
        caído chok* conked crash* deadlock* disconnect* down's errored erroring expiré* fail failed failing fails fallado
        falló fehlgeschlagen flaked flaky froze frozen gescheitert glitched hangs hosed hung inaccessible indisponible
        injoignable interrompu* interrumpid* irrecoverable kaput malfunction* misbehav* oom-killed oomkilled overload*
        panick* planté rate-limit rate-limited rate-limiting ratelimited saturated scheiterte schiefgelaufen segfault*
        short-circuited sobrecargado stall* stürzt surchargé swamped throttl* timed timedout timing tripped tumbó
        unavailable uncaught undecodable unhandled unparsable unparseable unreachable unreadable unrecoverable unresponsive
        wedged échoue échoué échouée überlastet
    """,
    BAD: """
        aborted acting amiss awry backed blank blind blocked bounced break broke broken busy cancel* capped cayó
        cierra clogged closed closes closing congested corrupt* cut cutting dead degraded deleted denied deprecated
        died disabled disappeared discarded down drained drop dropped dropping drops dying empty ended errored
        exceed* exhaust* exit exited expired fallen falls fell filtered flagged flapping forbidden freeze freezes
        full garbage garbled gibberish gone halt halted hanging hiccuped hit hitting incomplete insufficient
        interrupt* interrupted invalid kicked killed lagging lags lapsed locked looping losing lost maintenance
        malformed maxed misconfigured misfire misfired mismatch* missing nonsense nope off offline out outdated
        overwhelmed partial paused quit raise raised rebooted rebooting rebuilding redeployed refus* reject* reset
        restarted restarting revoked rolled s'arrête severed shut shuts sideways silence silent skipped slow
        spinning spins squares stale starved stehen stop stopped stopping stops struggle* struggling stuck stumbled
        suspended switched tanked terminat* threw thrown throws timed too truncated turned unauthorised unauthorized
        unconfigured unexpected unexpectedly unhandled unhealthy uninitialised uninitialized unknown unlicensed
        unloaded unmounted unplugged unrecognised unrecognized unstable unsupported unusable unwell vanished walled
        went wiped withdrawn wobbly
    """,
    TROUBLE: """
        ausnahme ausnahmefehler avería aviso bug crash deadlock difficult* dificultad* disconnection disruption* downtime
        défaillance err erreur erreurs error errors excepción exception exceptions failure failures falla fallas fallo
        fallos fatal fault fehler glitch* hiccup* hitch incident incidents interruption* issue issues malfunction mishap
        outage outages panne problem problema problemas probleme problems problème problèmes roadblock schwierigkeiten snag
        snags störung störungen time-out timeout timeouts trouble troubles zeitüberschreitung
    """,
    APOLOGY: """
        afraid alas apolog* argh bear bummer dang disculp* désagrément désol* embarrassed embarrassing entschuldig*
        excus* hm hmm hmmm inconvenience lament* lamentablemente leider malheureusement molestias oops oopsie ouch
        oups pardon patience perdón regret* regrettably sadly siento sigh sorry ugh uh-oh unannehmlichkeiten
        unfortunately verzeihung whoa whoops yikes
    """,
    RETRY: """
        again another back erneut intent* later minutos nochmal nochmals nuevamente re-ask re-run re-submit re-try reask
        refresh reload renouveler rerun rerunning resend resubmit retri* retry* réessay* shortly soon später tard tomorrow
        until versuchen wait waiting
    """,
    HELP: """
        admin administrator admins alerted contact developers devops engineer engineering engineers escalate*
        help-desk helpdesk incident investigate investigated investigating logged notified on-call oncall ops ping
        reference reported status support sysadmin team technician ticket
    """,
    NOW: """
        actualmente actuellement ahora aktuell aujourd'hui bis currently derzeit gerade hasta heute hoy instant
        instants mañana moment momentan momentanément momentarily now present presently rn still temporarily
        temporary today tonight yet
    """,
    EXPLAIN: """
        always bedeutet beyond common commonly común courante default denotes e.g generally happens heißt häufigste i.e
        implies indicate indicates mean meaning means meant meist mostly nearly often refer refers screenshot significa
        signifie signifies sometimes trace typically usually
    """,
    CONDITION: """
        if once unless when whenever where
    """,
    ADVICE: """
        add allow apply ask avoid bring bump call catch change check choose clean clear click close configure confirm define
        delete deploy disable don't downgrade edit email enable ensure enter file find fix follow free get go grant hold
        increase install iterate keep kill lift log look lower mail make move never open pass pay pick pin plug press
        promote pull push put raise read remove rename replace repoint reset restart review revoke rotate run select send
        set sign split start stop strip submit swap switch test try turn type unplug update upgrade use verify visit wrap
    """,
    OTHERS: """
        account accounts actor agency aircraft alarm album alquiler animal animals apartment attorney audit auditor
        author bail balance bank battery bird birds board boiler book borrower brake brakes bridge budget building
        bus buyer buyers calefacción camera car card cards case cases cat cats chauffage check checks cheque child
        children city claim claims client clients committee company contractor contractors contrat contrato cooling
        county court coverage crop customer customers deed defendant department departments deposit dishwasher
        dividend doctor dog dogs door dose drain drug dryer election electricity elevator employee employees escrow
        expense expenses factura facture faucet fee fees fence film fish flight flug flüge formulaire formular
        formulario furnace game gas gate guest guests he heater heating heizung her him his hotel house hvac income
        inquilino inspection inspector insurer interest invoice irs judge king kitchen landlord landlords lawyer
        lease leases ledger lender line lines loan locataire loyer mairie man manager match mechanic member members
        miete mieter migration mortgage neighbor neighbour novel nurse objection outlet owner owners package pago
        pagos paiement parcel parcels partner partners patient patients payment payments payroll penalty people
        permis permit person pipe plaintiff plane plant plants player players plumbing policy power premium
        president printer printers property pump purchase queen rack rechnung refrigerator refund refunds rent
        revenue rocket roof room rooms router row rows salary sale sales school seal seller sellers senate sensor
        sensors septic sewer she shed ship shipment soil song space sprinkler statement stock student students suite
        symptom symptoms tax taxes teacher team tenant tenants test tests their thermostat they tickets title train
        transaction transactions transfer tren trenes truck unit utility variance vendor vendors vermieter version
        versions vertrag vol vols vote vuelo vuelos wage war warranty washer water window wire woman zahlung zoning
        zug züge
    """,
    MENDED: """
        afterwards ago behoben cleared completed corrected credited eventually finally finished fixed imported migrated
        passed patched previously rebooked recovered refunded reopened repaired replaced resolved restored resuelto résolu
        solved succeeded succeeds successfully succès worked yesterday
    """,
    FUNCTION: """
        a about after al all also although am an and any anything appear appears are as at auf aus avec be because
        been before bei beim being between bitte both but by con daily dans das de del dem den der des did die do
        does du due during each ein eine einen einer einmal el en enough es est et even expected favor for from für
        get got ha habe haben had han has hat have hello here hi hourly however im in into is ist it it's its la las
        le les let let's like lo looks lors los mit monthly more most noch oder of ok okay on only onto or other ou
        over own para per please por pour que qui right s'est same se seem seems sind so some sont such sur takes
        taking than thank thanks that that's the then there there's these this those though through to too took un
        una und under une unos usual very veuillez via von war was weekly well were what which while who will with
        wurde wurden y yes zu zum zur été
    """,
    DELIVER: """
        add back came come coming conclude display follow give go present report return say share show tell
    """,
    JOINT: """
        after and as because before but however since so until which while
    """,
    HAPPEN: """
        accessing arisen arose aufgetreten blocking calling connecting cropped detected during encountered executing
        fetching generating happened inattendue inesperada inesperado interna interne interno interrupted keeping
        loading occurred occurs prevented preventing prevents processing produit produite raised reading retrieving
        running stopping survenu survenue technique techniques thrown trying técnica técnico técnicos while
    """,
    SOFT: """
        advise assist decir determine dire discuss do find finish give go have help indicar indiquer know locate look
        mitteilen mostrar nennen provide pull quote say see share show tell view
    """,
    PRONOUN: """
        both each either it it's its itself neither they they're which
    """,
    VERBAL: """
        aren't can't cannot cant couldn't couldnt didn't didnt doesn't doesnt don't hadn't hasn't haven't isn't isnt n't
        never not wasn't wasnt weren't won't wont wouldn't
    """,
    HOLD: """
        allow* appear* applies apply charge* contain* cover* exist* has have hold* holds includ* list* match* mention* name*
        need* offer* permit* record* require* say says show* specif* state* store* support*
    """,
    GENERAL: """
        break breaks closes crash crashes drop drops fail fails gone hang hangs happen happens occur occurs raises return
        returns shuts stall stalls stops throw throws time went
    """,
    TO: """
        to
    """,
    POLITE: """
        absolutely agradec* annoying appreciate* assure* assured bearing bonjour bother certainly colleague colleagues
        cordial* course dank danke dear delighted disappoint* estimad* feel frustrating geehrte glad gladly gracias grateful
        great greetings hallo happy hola hope kind kindly liebe love merci pleased pleasure thank* thanks understand* vielen
        welcome
    """,
    BE: """
        are be being is was were
    """,
    BUT: """
        but fortunately however instead meanwhile nevertheless still though
    """,
    MEET: """
        answered came come encounter encountered encountering experience experienced experiencing face faced facing gave get
        getting got had have having hit hits hitting keep keeps kept lose losing lost met ran received receiving returned
        returning returns run running seeing stumbled suffered suffering threw
    """,
    LIMIT: """
        allowance attempts budget calls cap capacity ceiling concurrency connections credits demand iterations limit
        limits load maximum memory messages questions quota rate requests retries sessions slots space steps storage
        token tokens traffic turns volume
    """,
    SPENT: """
        capped depleted exceed* exhaust* full gone heavy high hit hits limited many maxed more out over overran
        overrun reach reached restricted spent used
    """,
    ASK: """
        ask asked asking consulta demande enquir* frage inquir* interested know like message nachricht pregunta question
        questions request requested want wanted wish wonder wondering
    """,
    DISTANT: """
        keine keinen nicht pas plus
    """,
    FOR: """
        for
    """,
    YOU: """
        you
    """,
    FOREIGN: """
        algo anfrage arbeitsspeicher beim bitte con conexión connexion d'attente das datos del demasiadas demasiados
        der des desolé disculpa disculpe du délai désolé einen el entschuldigung erreur est fehler genügend ha hemos
        hubo ich impossible inesperada inesperado insuffisante insuficiente interner inténtalo inténtelo ist je kann
        keine konnte konnten lamentamos lamento le leid leider les lo los memoria momento más mémoire nicht nochmal
        notre nous ocurrió oups para pas passé peticiones por pour produite pude pudo puedo que quelque requête
        respuesta réessayez s'est salió se serverfehler serveur servicio servidor sie siento sistema solicitud
        später störung survenue tiempo trop tut una und une unser unsere verbindung veuillez votre vous wir wurde
        wurden zeitüberschreitung
    """,
    BARE_NOT: """
        never not
    """,
    TAKE: """
        dauert demora* gedauert last lasted lasts take taken takes taking tard* temps took
    """,
    SLOW: """
        ages demasiado forever lang lange long longer trop
    """,
    ARTICLE: """
        a all an any das der die each el every la le les los the these those un una une
    """,
    DOES: """
        allows blocks calls catches closes compares contains controls converts copies counts covers creates defines deletes
        describes disables drops ensures fills frees gets gives grows guards handles helps holds ignores inserts keeps lets
        limits loads logs makes marks moves opens picks prints protects provides pushes puts reads rejects releases removes
        repeats replaces requires resets retries runs saves sends serves sets shows skips sorts splits starts stops stores
        tests tracks treats tries turns uses waits wraps writes
    """,
    POLICY: """
        advice allowed allows autorisé autorisée autorizado confidential confidentiality confidentialité datenschutz
        designed erlaubt ethical forbids guidelines harmful illegal instructions law lawful laws legal legally
        licensed légal medical médical only outside permitido permitted policies policy politique política
        privacidad privacy private prohibited prohibits reasons rechtlich richtlinien rules scope security sensitive
        unsafe
    """,
    ASKERS: """
        app application browser build cable class code computer device disk driver extension firewall firmware form
        formula function game hardware internet job laptop library loop machine mailbox module package page password
        phone printer program project repo router script site software statement test tests thermostat tv url
        variable website wifi
    """,
    UNIT: """
        attempt attempts byte bytes calls characters gb gib hour hours kb mb messages mib milliseconds min mins minute
        minutes ms requests retries s sec second seconds secs times tokens tries
    """,
    MATCHES: """
        documents entries files hits invoices items matches payments properties records results rows transactions
    """,
    BEFORE: """
        before till unless until
    """,
    ENOUGH: """
        enough sufficient
    """,
    KEPT: """
        account accounts appointment billing book booking bookings calendar claim claims client customer customers
        expense expenses hr insurance inventory invoice invoices lease leases ledger library loan member membership
        order orders patient payment payments payroll permit policy product records reporting reservation
        reservations sales stock student support tax taxes ticket ticketing tickets title tracking transaction
        transactions transfer
    """,
    BECAUSE: """
        because since
    """,
    TRIED: """
        attempted began intended started tried wanted went wished
    """,
}
